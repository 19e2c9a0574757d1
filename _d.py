import numpy as np, time
from tests.families.alpha_contrastive.problems import *
from meanfield.families.alpha_contrastive.critical_points.sphere import *
space = LAW_F | {"points": [[*point, 0.0] for point in LAW_F["points"]]}
pl=solved("critical_points","relu",LAW_F,kernel("gaussian",.3)); pl=pl.isel(point=pl.stable.values==1); print(pl.energy.values, pl.basin_share.values,pl.wall.values)
for st in (40,300):
    t=time.process_time()
    r=solved("critical_points","relu",space,kernel("gaussian",.3),critical_points={"starts":st}); r=r.isel(point=r.stable.values==1); print(r.stable.values, r.energy.values,r.wall.values,r.basin_share.values,time.process_time()-t)
