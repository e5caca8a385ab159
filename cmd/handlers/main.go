// Command handlers is the plugin that comes with Holdfast. It has the handlers
// SLEEP_JOB, FAIL_JOB, SEND_EMAIL, HTTP_REQUEST and WEBHOOK.
package main

import (
	"os"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/tracing"
)

// concurrency is how many jobs a process runs at once. Most of them wait.
const concurrency = 100

func main() {
	mail := newMailer(os.Getenv)
	web := newRequester(os.Getenv("HTTP_REQUEST_ALLOW_PRIVATE") == "true")
	hooks := newWebhooks(os.Getenv)
	plugin.Serve(
		tracing.Setup(),
		plugin.Concurrency(concurrency),
		sleepHandler(),
		failHandler(),
		mail.handler(),
		web.handler(),
		hooks.handler(),
	)
}
