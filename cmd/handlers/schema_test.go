package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

func TestTheSchemasRepeatTheFactsOfTheHandlers(t *testing.T) {
	var anyCase []string
	for _, name := range ours {
		var pattern strings.Builder
		for _, r := range name {
			if unicode.IsLetter(r) {
				fmt.Fprintf(&pattern, "[%c%c]", unicode.ToUpper(r), unicode.ToLower(r))
			} else {
				pattern.WriteRune(r)
			}
		}
		anyCase = append(anyCase, pattern.String())
	}
	require.Contains(t, string(emailSchema), `"not": {"pattern": "^(`+strings.Join(anyCase, "|")+`)$"}`)
	require.Contains(t, string(requestSchema), fmt.Sprintf(`"maximum": %d}`, maxRequestSeconds))
}

// What a handler refuses for good is refused at submit, and nothing else is.
func TestSchemasAndHandlersAgree(t *testing.T) {
	handlers := launch(t, "HTTP_REQUEST_ALLOW_PRIVATE=true",
		"SMTP_HOST=127.0.0.1", "SMTP_PORT=1", "SMTP_TLS=none", "SMTP_FROM=jobs@example.org")
	schemas := map[string]*schema.Schema{}
	for _, spec := range handlers.Types() {
		compiled, err := schema.Compile(spec.Schema)
		require.NoError(t, err)
		schemas[spec.Type] = compiled
	}
	const (
		good = ""
		// only: by the handler only; a schema cannot say it.
		only = "only"
	)
	email := func(more string) string { return `{"to":"a@example.com","subject":"s","text":"t"` + more + `}` }
	request := func(more string) string { return `{"method":"GET","url":"http://127.0.0.1:1/"` + more + `}` }
	to := func(url string) string { return `{"method":"GET","url":` + url + `}` }
	for _, c := range []struct{ jobType, payload, want string }{
		{"SLEEP_JOB", `{"sleepSeconds":1}`, good},
		{"SLEEP_JOB", `"{\"sleepSeconds\": 1}"`, good},
		{"SLEEP_JOB", `{"sleepSeconds":1,"more":true}`, good},
		{"SLEEP_JOB", `{"sleepSeconds":0}`, "/sleepSeconds: must be at least 1"},
		{"SLEEP_JOB", `{"sleepSeconds":301}`, "/sleepSeconds: must be at most 300"},
		{"SLEEP_JOB", `{"sleepSeconds":1.5}`, "/sleepSeconds: must be an integer"},
		{"SLEEP_JOB", `{"sleepSeconds":"1"}`, "/sleepSeconds: must be an integer"},
		{"SLEEP_JOB", `{"sleepSeconds":null}`, "/sleepSeconds: must be an integer"},
		{"SLEEP_JOB", `{}`, "/sleepSeconds: is required"},
		{"SLEEP_JOB", `null`, ": must be an object"},
		{"SLEEP_JOB", `"soon"`, ": must be an object"},
		{"SLEEP_JOB", `{"sleepSeconds":1.0}`, only},
		{"FAIL_JOB", `{"message":"no paper"}`, good},
		{"FAIL_JOB", `{"message":null}`, good},
		{"FAIL_JOB", `{}`, good},
		{"FAIL_JOB", `null`, good},
		{"FAIL_JOB", `{"message":7}`, "/message: must be a string or null"},
		{"FAIL_JOB", `[]`, ": must be an object or null"},
		{"SEND_EMAIL", email(``), good},
		{"SEND_EMAIL", email(`,"cc":null,"bcc":"","replyTo":["b@example.com",""],"html":null,"headers":{"X-A":"ü\tb"}`), good},
		{"SEND_EMAIL", email(`,"headers":null,"cc":"B <b@example.com>, c@example.com"`), good},
		{"SEND_EMAIL", `{"to":["", "a@example.com"],"subject":"","html":"<p>"}`, good},
		// What only differs in case is another member, and the last of several counts.
		{"SEND_EMAIL", email(`,"TO":7,"Subject":"s\r\nBcc: x@example.com","CC":["Bob"]`), good},
		{"SEND_EMAIL", `{"to":7,"subject":"s\n","text":"t","subject":"s","to":"a@example.com"}`, good},
		{"SEND_EMAIL", email(`,"headers":{"X A":"b"},"headers":{"X-A":"b"}`), good},
		{"SEND_EMAIL", `{"To":"a@example.com","subject":"s","text":"t"}`, "/to: is required"},
		{"SEND_EMAIL", `{"to":[],"subject":"s","text":"t"}`, "/to: no items match contains schema"},
		{"SEND_EMAIL", `{"to":[" "],"subject":"s","text":"t"}`, "/to: no items match contains schema"},
		{"SEND_EMAIL", `{"to":" ","subject":"s","text":"t"}`, "/to: must match the pattern @"},
		{"SEND_EMAIL", `{"to":null,"subject":"s","text":"t"}`, "/to: must be a string or an array"},
		{"SEND_EMAIL", `{"to":7,"subject":"s","text":"t"}`, "/to: must be a string or an array"},
		{"SEND_EMAIL", `{"to":"Bob","subject":"s","text":"t"}`, "/to: must match the pattern @"},
		{"SEND_EMAIL", email(`,"cc":["Bob"]`), "/cc/0: must match the pattern"},
		{"SEND_EMAIL", email(`,"bcc":{}`), "/bcc: must be a string, an array or null"},
		{"SEND_EMAIL", `{"to":"a@example.com","subject":"s"}`, ": fits none of the forms that are allowed: text is required; or html is required"},
		{"SEND_EMAIL", `{"to":"a@example.com","subject":"s","text":"","html":""}`, "text must not be empty; or html must not be empty"},
		{"SEND_EMAIL", `{"to":"a@example.com","subject":"s\r\nBcc: x@example.com","text":"t"}`, "/subject: must match the pattern"},
		{"SEND_EMAIL", email(`,"headers":{"X-A":"b\nBcc: x@example.com"}`), "/headers/X-A: must match the pattern"},
		{"SEND_EMAIL", email(`,"headers":{"X A":"b"}`), "/headers/X A: has a name that must match the pattern"},
		{"SEND_EMAIL", email(`,"headers":{"mime-VERSION":"b"}`), "/headers/mime-VERSION: has a name that has a form that the schema excludes"},
		{"SEND_EMAIL", email(`,"headers":{"X-A":7}`), "/headers/X-A: must be a string"},
		{"SEND_EMAIL", `{"to":"@@","subject":"s","text":"t"}`, only},
		{"SEND_EMAIL", `{"to":"a@example.com","subject":"` + strings.Repeat("x", 999) + `","text":"t"}`, only},
		{"HTTP_REQUEST", request(``), good},
		{"HTTP_REQUEST", request(`,"headers":{"A":"b"},"body":[1],"expectStatus":[200,404],"timeoutSeconds":0.5`), good},
		{"HTTP_REQUEST", request(`,"headers":null,"body":null,"expectStatus":null,"timeoutSeconds":null`), good},
		{"HTTP_REQUEST", request(`,"expectStatus":204,"timeoutSeconds":300`), good},
		{"HTTP_REQUEST", request(`,"URL":"file:///etc/passwd","timeoutSECONDS":0`), good},
		{"HTTP_REQUEST", `{"Method":"GET","url":"http://127.0.0.1:1"}`, "/method: is required"},
		{"HTTP_REQUEST", to(`"HTTPS://user:p:w@127.0.0.1:1?q= x#f"`), good},
		{"HTTP_REQUEST", to(`"http://[::1]:1/ü"`), good},
		{"HTTP_REQUEST", `{"method":"M-SEARCH","url":"http://127.0.0.1:1"}`, good},
		{"HTTP_REQUEST", `{"method":"GET /","url":"http://127.0.0.1:1"}`, "/method: must match the pattern"},
		{"HTTP_REQUEST", `{"method":"GET"}`, "/url: is required"},
		{"HTTP_REQUEST", to(`"/path"`), "/url: must match the pattern"},
		{"HTTP_REQUEST", to(`"file:///etc/passwd"`), "/url: must match the pattern"},
		{"HTTP_REQUEST", to(`"http://:80/"`), "/url: must match the pattern"},
		{"HTTP_REQUEST", to(`"http://a@:80/"`), "/url: must match the pattern"},
		{"HTTP_REQUEST", to(`"http:///a"`), "/url: must match the pattern"},
		{"HTTP_REQUEST", to(`"http://a b/"`), "/url: must match the pattern"},
		{"HTTP_REQUEST", to(`"http:a"`), "/url: must match the pattern"},
		{"HTTP_REQUEST", to(`"http://127.0.0.1:1/\n"`), "/url: must match the pattern"},
		{"HTTP_REQUEST", to(`7`), "/url: must be a string"},
		{"HTTP_REQUEST", request(`,"timeoutSeconds":0`), "/timeoutSeconds: must be greater than 0"},
		{"HTTP_REQUEST", request(`,"timeoutSeconds":301`), "/timeoutSeconds: must be at most 300"},
		{"HTTP_REQUEST", request(`,"headers":{"A":"b\r\nC: d"}`), "/headers/A: must match the pattern"},
		{"HTTP_REQUEST", request(`,"headers":{"A: b":"d"}`), "/headers/A: b: has a name that must match"},
		{"HTTP_REQUEST", request(`,"expectStatus":"200"`), "/expectStatus: must be an integer, an array or null"},
		{"HTTP_REQUEST", request(`,"expectStatus":[200.5]`), "/expectStatus/0: must be an integer"},
		{"HTTP_REQUEST", to(`"http://[::1"`), only},
	} {
		found := schemas[c.jobType].Check(json.RawMessage(c.payload))
		ended := run(t, handlers, c.jobType, c.payload)
		refused := ended.Kind == job.PermanentFailure && (ended.Code == "bad_payload" || ended.Code == "bad_request")
		require.Equal(t, c.want != good, refused, "%s %.200s: %s %s", c.jobType, c.payload, ended.Kind, ended.Message)
		if c.want == good || c.want == only {
			require.Empty(t, found, "%s %.200s", c.jobType, c.payload)
			continue
		}
		require.Len(t, found, 1, "%s %.200s", c.jobType, c.payload)
		require.Contains(t, found[0].Pointer+": "+found[0].Message, c.want)
	}
}
