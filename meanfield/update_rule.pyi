from meanfield.families.update_rule.problem import Problem as Problem
