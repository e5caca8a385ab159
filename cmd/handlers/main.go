// Command handlers is the handler plugin that comes with Holdfast: SLEEP_JOB,
// FAIL_JOB, SEND_EMAIL and HTTP_REQUEST.
package main

import (
	"os"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/tracing"
)

// concurrency is how many jobs a process takes at once. They mostly wait.
const concurrency = 100

func main() {
	mail := newMailer(os.Getenv)
	web := newRequester(os.Getenv("HTTP_REQUEST_ALLOW_PRIVATE") == "true")
	plugin.Serve(
		tracing.Setup(),
		plugin.Concurrency(concurrency),
		sleepHandler(),
		failHandler(),
		mail.handler(),
		web.handler(),
	)
}
