"""Residual networks as modules of PyTorch, from which nothing of the library is taken but the weights."""

from itertools import pairwise


def module_of(torch, weights):
    """Module in double precision with the weights of a network, whose `layers` are in the order of its weights."""
    nn, shape = torch.nn, weights.network

    class Convolved(nn.Module):
        def __init__(self, below, above, kernel, stride):
            super().__init__()
            own = shape.bias and not shape.batch_norm
            self.map = nn.Conv2d(below, above, kernel, stride, padding=kernel // 2, bias=own)
            self.norm = nn.BatchNorm2d(above) if shape.batch_norm else nn.Identity()

        def forward(self, x):
            return self.norm(self.map(x))

    class Block(nn.Module):
        def __init__(self, below, above, stride):
            super().__init__()
            self.first = Convolved(below, above, shape.kernel, stride)
            self.second = Convolved(above, above, shape.kernel, 1)
            moves = shape.residual and (stride > 1 or below != above)
            self.shortcut = Convolved(below, above, 1, stride) if moves else None

        def forward(self, x):
            y = self.second(torch.relu(self.first(x)))
            if shape.residual:
                y = y + (x if self.shortcut is None else self.shortcut(x))
            return torch.relu(y)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = Convolved(shape.image[2], shape.channels[0], shape.kernel, 1)
            blocks, below = [], shape.channels[0]
            for stage, above in enumerate(shape.channels):
                for number in range(shape.blocks):
                    blocks.append(Block(below, above, shape.stride if stage and not number else 1))
                    below = above
            self.blocks = nn.ModuleList(blocks)
            widths = (below, *shape.widths)
            self.dense = nn.ModuleList([nn.Linear(*pair, bias=shape.bias) for pair in pairwise(widths)])

        def features(self, x):
            x = torch.relu(self.stem(x))
            for block in self.blocks:
                x = block(x)
            return nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)

        def forward(self, x):
            x = self.features(x)
            for layer in self.dense[:-1]:
                x = torch.relu(layer(x))
            return self.dense[-1](x)

    module = Network().double()
    convolved = [module.stem]
    for block in module.blocks:
        convolved += [block.first, block.second, *([] if block.shortcut is None else [block.shortcut])]
    module.layers = [*(each.map for each in convolved), *module.dense]
    own = [*(layer.weight for layer in module.layers)]
    own += [layer.bias for layer in module.layers if layer.bias is not None]
    if shape.batch_norm:
        own += [each.norm.weight for each in convolved] + [each.norm.bias for each in convolved]
    module.own, module.norms = own, [each.norm for each in convolved if shape.batch_norm]
    with torch.no_grad():
        for parameter, part in zip(own, weights.parts, strict=True):
            parameter.copy_(torch.tensor(part))
    return module
