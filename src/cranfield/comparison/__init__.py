"""Which run is better, by how much, and how sure that is: compare, leaderboard, gate, design, stability, correlate, reproduce."""
