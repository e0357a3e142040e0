"""What stands around kernel calls while somebody looks: profiles, timings, checks, traces."""
