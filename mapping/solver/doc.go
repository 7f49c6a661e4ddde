// Package solver places graphs of virtual nodes and links onto testbeds: hosts
// joined by wires through switches. It knows nothing of requests, inventories
// or files; package assign builds its problems from assign's files.
//
// The score is that of assign (Ricci, Alfeld, Lepreau, "A Solver for the
// Network Testbed Mapping Problem", 2003) with weights that the caller sets.
// Violations are no part of the score. Costs are kept in whole millionths and
// steps are counted, so that a seed and an effort give the same answer
// everywhere.
//
// # How it works
//
// Hosts that no request can tell apart form a hardware class, and nodes that
// want the same form a kind; what a kind costs on a class is computed once.
// Like interfaces form bundles and wires between the same switches trunks:
// the search counts what is on a bundle or trunk and leaves the choice of the
// single wire to the end. Up to 16 paths between two switches are looked at.
//
// Before the search, proofs of impossibility are tried: a node without a
// candidate, a link faster than all interfaces, a cut in the flow from kinds
// to classes (too few hosts), links that must leave a switch and exceed its
// trunks. Then every node gets a host greedily, by what draws it most to those
// placed; those left over get one by augmenting chains. Simulated annealing
// follows, on exact sums: a step moves a node or swaps two, mostly towards a
// neighbour's host or switch; now and then neighbours, all nodes of a host,
// or all of a switch are moved together. Requests of up to 100 nodes are
// annealed four times from the start. If links fit in sum but not on single
// wires, something is held back there and the search goes on.
//
// # What was tried
//
// Measured on the 41 instances of the mapping issue and on unseen ones of
// their families, as the geometric mean of score over planted score:
//
//   - Greedy placement and single moves and swaps only: 0.768, and some
//     requests of 10 and 50 nodes ended worse than assign's best, because
//     nodes once spread over two switches could not get back together.
//   - A quick estimate of a step's cost before making it, and leaving out
//     steps between hosts that are alike: a quarter to two thirds of the time.
//   - Moving groups of neighbours together, one step in 100: 0.758. More often
//     costs more time than it gains.
//   - Moving whole hosts and switches too: the last small requests of virtual
//     machines that ended on the wrong switch were cured; for large requests
//     it must be rare, because each such step touches many nodes.
//   - Starting afresh four times: best up to 100 nodes, worse from 200 on.
//     Reheating the best placement instead of starting afresh: no gain.
//   - Against an integer program (60 random requests of 2 to 12 nodes on up to
//     12 hosts), four rounds from 0.35 missed the optimum by more than 2 % in 4
//     of 100 tries, from 0.8 in 2; 32 rounds from 1, with eight times the
//     steps (13 ms), in none of 525.
//   - Starting temperatures of 0.15 and 0.25 were 2 to 4 % worse than 0.4 on
//     the local ("geo") requests, 0.6 was 9 % worse on the virtual machines.
//   - Multilevel partitioning of the request was not needed: annealing beats
//     the planted placements also on full testbeds of 1,000 nodes.
package solver
