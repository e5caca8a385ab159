// Package child is the operating system's side of a handler process: its fork,
// its limits, its death and that of everything it forked, what it prints, and the
// directory its socket lies in.
//
// Processes are started by go-plugin, for which they are runners; everything
// else is asked of them directly, for go-plugin's own ways can block for ever.
package child
