from meanfield.families.latent_tree.images.operators import find_layer_operators as find_layer_operators
from meanfield.families.latent_tree.images.problem import ImageProblem as ImageProblem
from meanfield.families.latent_tree.initial import find_operators as find_operators
from meanfield.families.latent_tree.many_nodes.luck import lucky_chance as lucky_chance
from meanfield.families.latent_tree.many_nodes.luck import nodes_for_luck as nodes_for_luck
from meanfield.families.latent_tree.problem import Problem as Problem
