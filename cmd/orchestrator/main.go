// Command orchestrator is Holdfast. It serves the HTTP API, runs jobs in plugins
// under leases, and manages its database.
package main

import (
	"context"
	"os"

	"github.com/holdfast-jobs/holdfast/plugin/host"
)

// wardenArgument makes this program the warden or a keeper of another run. It is not a
// command for users.
const wardenArgument = "warden-of-handlers"

func main() {
	if len(os.Args) == 3 && os.Args[1] == wardenArgument {
		os.Exit(host.Warden(os.Args[2]))
	}
	program := program{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(),
		// By the time it is needed, an upgrade may have replaced this program's file.
		assemble: assembleWith("/proc/self/exe", wardenArgument),
	}
	os.Exit(program.run(context.Background(), os.Args[1:]))
}
