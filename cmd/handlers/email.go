package main

import (
	"context"
	_ "embed"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// emailSchema refuses at submission, as far as a schema can, what the handler would
// refuse for good. Tags could not say all of it.
//
//go:embed email.schema.json
var emailSchema []byte

type emailArgs struct {
	To      written           `json:"to"`
	CC      written           `json:"cc,omitempty"`
	BCC     written           `json:"bcc,omitempty"`
	ReplyTo written           `json:"replyTo,omitempty"`
	Subject string            `json:"subject"`
	Text    string            `json:"text,omitempty"`
	HTML    string            `json:"html,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// mailer sends the mail of SEND_EMAIL jobs.
type mailer struct {
	settings smtpSettings
	// problem is what is wrong with the settings; nil for nothing.
	problem error
}

func newMailer(getenv func(string) string) mailer {
	settings, err := readSMTPSettings(getenv)
	return mailer{settings: settings, problem: err}
}

func (m mailer) handler() plugin.Handler {
	return plugin.Handle("SEND_EMAIL", m.sendEmail, plugin.WithSchema(emailSchema),
		plugin.Description("Sends a letter over SMTP."),
		plugin.Timeout(time.Minute), plugin.MaxAttempts(8),
		plugin.Retry(plugin.ExponentialBackoff(5*time.Second, 3, 30*time.Minute)))
}

func (m mailer) sendEmail(ctx context.Context, j plugin.Job[emailArgs]) error {
	if m.problem != nil {
		return plugin.Code(m.problem, "not_configured")
	}
	letter, err := compose(j.Args, m.settings.from, j.ID, time.Now())
	if err != nil {
		return plugin.Code(plugin.Permanent(err), "bad_payload")
	}
	return deliver(ctx, m.settings, letter)
}
