// Command orchestrator is Holdfast. It serves the HTTP API, runs jobs in plugins
// under leases, and manages its database. Package plugin/host also runs it as the keeper
// of each plugin process.
package main

import (
	"context"
	"os"
)

func main() {
	program := program{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(),
		assemble: assemble,
	}
	os.Exit(program.run(context.Background(), os.Args[1:]))
}
