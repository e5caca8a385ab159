// Command orchestrator is Holdfast: it serves the HTTP API, runs jobs in
// handler plugins under leases, and looks after its database.
package main

import (
	"context"
	"os"

	"github.com/holdfast-jobs/holdfast/plugin/host"
)

// wardenArgument makes this program the warden or a keeper of another run of it, instead of
// a command that anybody would call.
const wardenArgument = "warden-of-handlers"

func main() {
	if len(os.Args) == 3 && os.Args[1] == wardenArgument {
		os.Exit(host.Warden(os.Args[2]))
	}
	program := program{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(),
		// The file of this program may be another's by the time it is needed.
		assemble: assembleBeside("/proc/self/exe", wardenArgument),
	}
	os.Exit(program.run(context.Background(), os.Args[1:]))
}
