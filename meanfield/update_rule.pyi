from meanfield.families.update_rule.escape import predict_escape as predict_escape
from meanfield.families.update_rule.fixed_points.branches import continue_fixed_points as continue_fixed_points
from meanfield.families.update_rule.problem import Problem as Problem
