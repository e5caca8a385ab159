// Package history is the record of a chaos run: what clients asked and were
// answered, which faults were injected, what handlers did, which rows changed, and
// what was left at the end. The runner writes it, and the checker judges it. Neither
// knows more of the other than this, and nothing here knows the product.
//
// A run is a directory:
//
//	run.json          [Run]: the seed, the settings, and how much the run must do
//	clients.jsonl     [Call]: one line for each call of the API
//	faults.jsonl      [Fault]: one line for each fault, written when it is healed
//	effects/*.jsonl   [Effect]: what handlers did, in files called ORCHESTRATOR-PLUGIN.jsonl
//	witness.jsonl     [Change]: every committed change of [Tables], by logical decoding
//	final.jsonl       [FinalRow]: all rows of [Tables] at the end
//	processes.jsonl   [Process]: every process that ended, or was there at the end
//	leaks.json        [Leaks]: what the run has left behind
//	timings.json      [Timings]: how long it took to recover
//
// All times of the record are nanoseconds since 1970, by the clock of the one machine
// that runs everything ([Nanos]). The runner takes them from one time.Time with a
// monotonic clock, so that they never go back. Times within rows are the database's.
package history
