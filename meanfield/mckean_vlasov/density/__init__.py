"""Density P_t(w|u) of any limit: the McKean-Vlasov Fokker-Planck equation by a Lagrangian or an Eulerian scheme."""
