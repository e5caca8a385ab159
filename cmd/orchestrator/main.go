// Command orchestrator is Holdfast: it serves the HTTP API, runs jobs in
// handler plugins under leases, and looks after its database.
package main

import (
	"context"
	"os"
)

func main() {
	program := program{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), assemble: assemble,
	}
	os.Exit(program.run(context.Background(), os.Args[1:]))
}
