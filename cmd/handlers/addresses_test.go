package main

import (
	"net/mail"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin"
)

func TestAnErrorCountsAddressesAndShowsNone(t *testing.T) {
	long := strings.Repeat("x", 999) + "@example.com"
	for members, want := range map[string]string{
		`"to": "ada@example.com, bob at example.com"`:                             "to: address 2 is",
		`"to": "bob at example.com"`:                                              "to: address 1 is written neither like name@example.com nor like",
		`"to": ["ada@example.com, \"B, Bob\" <bob@example.com>", "", "eve@"]`:     "to: address 3 is",
		`"to": ",ada@example.com,, bob@example.com,eve@,mallory@example.com"`:     "to: address 3 is",
		`"to": "ada@example.com", "cc": "bob@example.com, bob@"`:                  "cc: address 2 is",
		`"to": "ada@example.com", "bcc": ["bob@example.com", "bob (\u0001"]`:      "bcc: address 2 is",
		`"to": "ada@example.com", "replyTo": "bob@example.com <bob>"`:             "replyTo: address 1 is",
		`"to": "` + strings.Repeat(`bob,`, 100_000) + `"`:                         "to: address 1 is",
		`"to": "` + strings.Repeat(`bob@example.com,`, 10_000) + `b <ob@"`:        "to: address 10001 is",
		`"to": "ada@example.com, bob@example.com, ` + long + `"`:                  "header To holds a word that is too long",
		`"to": "ada@example.com", "replyTo": "bob@example.com, b <` + long + `>"`: "header Reply-To holds a word that is too long",
	} {
		s := smtpSettings{from: mail.Address{Address: "jobs@example.org"}}
		err := mailer{settings: s}.sendEmail(t.Context(), emailJob(t, `{"subject": "s", "text": "t", `+members+`}`))
		require.ErrorContains(t, err, want)
		require.Equal(t, plugin.Verdict{Permanent: true, Code: "bad_payload"}, plugin.VerdictOf(err))
		require.NotRegexp(t, `ada|bob|eve`, err.Error())
		require.NotContains(t, err.Error(), "xxx")
		require.Less(t, len(err.Error()), 200)
	}
}
