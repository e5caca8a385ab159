package main

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/plugintest"
	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

func emailJob(t *testing.T, payload string) plugin.Job[emailArgs] {
	t.Helper()
	j := plugin.Job[emailArgs]{ID: "019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa"}
	require.NoError(t, json.Unmarshal([]byte(payload), &j.Args))
	return j
}

func parse(t *testing.T, r received) (*mail.Message, string) {
	t.Helper()
	for line := range strings.SplitSeq(strings.TrimSuffix(r.text, "\r\n"), "\r\n") {
		require.LessOrEqual(t, len(line), 998)
		require.NotContains(t, line, "\n")
		require.True(t, isASCII(line), line)
	}
	header, _, _ := strings.Cut(r.text, "\r\n\r\n")
	for line := range strings.SplitSeq(header, "\r\n") {
		require.NotEmpty(t, strings.TrimSpace(line), "some servers take it for the end of the header")
	}
	message, err := mail.ReadMessage(strings.NewReader(r.text))
	require.NoError(t, err)
	body, err := io.ReadAll(message.Body)
	require.NoError(t, err)
	return message, string(body)
}

func unquote(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(quotedprintable.NewReader(r))
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

func TestAnEmailArrives(t *testing.T) {
	for _, tls := range []string{"none", "starttls", "implicit"} {
		t.Run(tls, func(t *testing.T) {
			s := startMailServer(t, func(s *mailServer) { s.implicit = tls == "implicit" })
			m := mailer{settings: s.settings(tls)}
			if tls != "none" {
				m.settings.username, m.settings.password = "jobs", "secret"
			}
			err := m.sendEmail(t.Context(), emailJob(t, `{
				"to": "Ada Lovelace <ada@example.com>, bob@example.com", "cc": ["ünal <cc@example.com>"],
				"bcc": "hidden@example.com", "replyTo": "answers@example.org",
				"subject": "Grüße aus Zürich", "text": "Hold fast.\n.\nÜber alles = gut\n", "headers": {"X-Campaign": "späte Ernte"}}`))
			require.NoError(t, err)
			require.Len(t, s.received(), 1)
			got := s.received()[0]
			require.Equal(t, "jobs@example.org", got.from)
			require.Equal(t, []string{"ada@example.com", "bob@example.com", "cc@example.com", "hidden@example.com"}, got.to)
			require.Equal(t, tls != "none", got.encrypted)
			if tls != "none" {
				require.Equal(t, "jobs\x00secret", got.login)
			}
			message, body := parse(t, got)
			decode := new(mime.WordDecoder).DecodeHeader
			subject, err := decode(message.Header.Get("Subject"))
			require.NoError(t, err)
			require.Equal(t, "Grüße aus Zürich", subject)
			campaign, err := decode(message.Header.Get("X-Campaign"))
			require.NoError(t, err)
			require.Equal(t, "späte Ernte", campaign)
			to, err := message.Header.AddressList("To")
			require.NoError(t, err)
			require.Equal(t, "Ada Lovelace", to[0].Name)
			require.NotContains(t, got.text, "hidden@")
			require.Equal(t, "<019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa@example.org>", message.Header.Get("Message-ID"))
			require.Equal(t, "text/plain; charset=utf-8", message.Header.Get("Content-Type"))
			require.Equal(t, "Hold fast.\n.\nÜber alles = gut\n", unquote(t, strings.NewReader(body)))
		})
	}
}

func TestTextAndHTMLAreAlternativesAndEveryAttemptSendsTheSame(t *testing.T) {
	s := startMailServer(t, nil)
	m := mailer{settings: s.settings("starttls")}
	j := emailJob(t, `{"to": ["ada@example.com"], "subject": "s", "text": "plain =_", "html": "<p>–</p>"}`)
	require.NoError(t, m.sendEmail(t.Context(), j))
	require.NoError(t, m.sendEmail(t.Context(), j))
	letters := s.received()
	require.Len(t, letters, 2)

	message, body := parse(t, letters[0])
	again, _ := parse(t, letters[1])
	require.Equal(t, message.Header.Get("Message-ID"), again.Header.Get("Message-ID"))
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/alternative", kind)
	parts := multipart.NewReader(strings.NewReader(body), parameters["boundary"])
	for _, want := range [][2]string{{"text/plain; charset=utf-8", "plain =_"}, {"text/html; charset=utf-8", "<p>–</p>"}} {
		part, err := parts.NextRawPart()
		require.NoError(t, err)
		require.Equal(t, want[0], part.Header.Get("Content-Type"))
		require.Equal(t, want[1], unquote(t, part))
	}
	_, err = parts.NextPart()
	require.ErrorIs(t, err, io.EOF)
}

func TestLongHeadersAreFolded(t *testing.T) {
	s := startMailServer(t, nil)
	subject := strings.TrimSpace(strings.Repeat("word ", 500))
	accented := strings.TrimSpace(strings.Repeat("wörd ", 500))
	payload, err := json.Marshal(map[string]any{
		"to": strings.Repeat("a@example.com,", 200) + "b@example.com", "subject": subject, "text": strings.Repeat("x", 5000) + "\n",
		"headers": map[string]string{"X-Long": accented},
	})
	require.NoError(t, err)
	m := mailer{settings: s.settings("none")}
	require.NoError(t, m.sendEmail(t.Context(), emailJob(t, string(payload))))
	got := s.received()[0]
	require.Equal(t, []string{"a@example.com", "b@example.com"}, got.to, "each recipient once")
	message, body := parse(t, got)
	require.Equal(t, subject, message.Header.Get("Subject"))
	long, err := new(mime.WordDecoder).DecodeHeader(message.Header.Get("X-Long"))
	require.NoError(t, err)
	require.Equal(t, accented, long)
	require.Equal(t, strings.Repeat("x", 5000)+"\n", unquote(t, strings.NewReader(body)))
}

func TestSpacesMakeNoBlankLineInTheHeader(t *testing.T) {
	s := startMailServer(t, nil)
	m := mailer{settings: s.settings("none")}
	subject := strings.Repeat("x", 64) + strings.Repeat(" ", 80) + strings.Repeat("y", 90) + "  z"
	payload, err := json.Marshal(map[string]string{"to": "a@example.com", "subject": subject, "text": "t"})
	require.NoError(t, err)
	require.NoError(t, m.sendEmail(t.Context(), emailJob(t, string(payload))))
	message, _ := parse(t, s.received()[0])
	require.Equal(t, strings.Fields(subject), strings.Fields(message.Header.Get("Subject")))
}

// The schema reads a payload by exact names, and so must what mails it.
func TestALetterGoesToThoseWhomTheSchemaHasSeen(t *testing.T) {
	s := startMailServer(t, nil)
	h := plugintest.Start(t, mailer{settings: s.settings("none")}.handler())
	for _, members := range []string{
		`"to":"good@example.com","TO":"evil@example.com","Bcc":"evil@example.com"`,
		`"TO":"evil@example.com","bCC":["evil@example.com"],"to":"good@example.com"`,
		`"to":"evil@example.com","cc":"evil@example.com","t\u006f":"good@example.com","cc":null`,
	} {
		payload := json.RawMessage(`{"subject":"s","text":"t",` + members + `}`)
		compiled, err := schema.Compile(emailSchema)
		require.NoError(t, err)
		require.Empty(t, compiled.Check(payload), members)
		result := h.Run(t.Context(), plugintest.Job{Payload: payload})
		require.Equal(t, plugintest.Succeeded, result.Outcome, "%s", result)
		letters := s.received()
		require.Equal(t, []string{"good@example.com"}, letters[len(letters)-1].to, members)
		require.NotContains(t, letters[len(letters)-1].text, "evil")
	}
	require.Len(t, s.received(), 3)
}

func TestAnAddressIsOneAddressToTheServer(t *testing.T) {
	for to, want := range map[string]string{
		`"evil@attacker.example> NOTIFY=NEVER "@example.com`: `"evil@attacker.example> NOTIFY=NEVER "@example.com`,
		`"evil@attacker.example>"@example.com`:               `"evil@attacker.example>"@example.com`,
		`"a b"@example.com`:                                  `"a b"@example.com`,
		`"a\"> b\\"@example.com`:                             `"a\"> b\\"@example.com`,
		`"a@b"@example.com`:                                  `"a@b"@example.com`,
		`".a."@example.com`:                                  `".a."@example.com`,
		`"plain"@example.com`:                                `plain@example.com`,
		`Ada <"<ada>"@example.com>`:                          `"<ada>"@example.com`,
		`ada+tag.x'y@[192.0.2.1]`:                            `ada+tag.x'y@[192.0.2.1]`,
	} {
		for _, member := range []string{"to", "cc", "bcc"} {
			s := startMailServer(t, nil)
			m := mailer{settings: s.settings("none")}
			payload, err := json.Marshal(map[string]any{"to": "b@example.com", "subject": "s", "text": "t", member: to})
			require.NoError(t, err)
			require.NoError(t, m.sendEmail(t.Context(), emailJob(t, string(payload))), to)
			require.Len(t, s.received(), 1)
			got := s.received()[0]
			require.Contains(t, got.to, want, to)
			require.Empty(t, got.parameters, to)
			if member == "to" {
				require.Len(t, got.to, 1)
			}
		}
	}
}

func TestTheSenderIsOneAddressToTheServer(t *testing.T) {
	s := startMailServer(t, nil)
	m := mailer{settings: s.settings("none")}
	m.settings.from.Address = `a@b> X=Y @example.org`
	require.NoError(t, m.sendEmail(t.Context(), emailJob(t, `{"to": "a@example.com", "subject": "s", "text": "t"}`)))
	require.Equal(t, `"a@b> X=Y "@example.org`, s.received()[0].from)
	message, _ := parse(t, s.received()[0])
	require.Equal(t, "<019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa@example.org>", message.Header.Get("Message-ID"))
}

func TestALetterThatCannotBeWrittenFailsForGood(t *testing.T) {
	s := startMailServer(t, nil)
	m := mailer{settings: s.settings("none")}
	for name, payload := range map[string]string{
		"nobody to send to":      `{"to": [], "subject": "s", "text": "t"}`,
		"nothing to say":         `{"to": "a@example.com", "subject": "s"}`,
		"injection by subject":   `{"to": "a@example.com", "subject": "s\r\nBcc: x@example.com", "text": "t"}`,
		"injection by value":     `{"to": "a@example.com", "subject": "s", "text": "t", "headers": {"X-A": "b\nBcc: x@example.com"}}`,
		"injection by name":      `{"to": "a@example.com", "subject": "s", "text": "t", "headers": {"X-A: b\r\nBcc": "x@example.com"}}`,
		"a header that is ours":  `{"to": "a@example.com", "subject": "s", "text": "t", "headers": {"bcc": "x@example.com"}}`,
		"a word without an end":  `{"to": "a@example.com", "subject": "` + strings.Repeat("x", 999) + `", "text": "t"}`,
		"a name without an end":  `{"to": "` + strings.Repeat("x", 999) + ` <a@example.com>", "subject": "s", "text": "t"}`,
		"an exotic address here": `{"to": "ü@example.com", "subject": "s", "text": "t"}`,
		"injection by address":   `{"to": "a@example.com\r\nBcc: x@example.com", "subject": "s", "text": "t"}`,
		"injection by quoting":   `{"to": "\"a\r\nRCPT TO:<x@example.com>\"@example.com", "subject": "s", "text": "t"}`,
		"a tab in an address":    `{"to": "\"a\tb\"@example.com", "subject": "s", "text": "t"}`,
		"a control beyond ASCII": `{"to": "\"a\u0085b\"@example.com", "subject": "s", "text": "t"}`,
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, permanent(m.sendEmail(t.Context(), emailJob(t, payload))))
		})
	}
	require.Empty(t, s.received())
	var args emailArgs
	require.Error(t, json.Unmarshal([]byte(`{"to": 5}`), &args))
}

func TestWhatTheServerAnswersDecides(t *testing.T) {
	cases := map[string]struct {
		verb, answer string
		permanent    bool
		code         string
	}{
		"busy at once":          {"CONNECT", "421 busy", false, "smtp_421"},
		"blocked at once":       {"CONNECT", "554 go away", false, "smtp_554"},
		"wrong password":        {"AUTH", "535 who", false, "smtp_535"},
		"sender refused":        {"MAIL", "550 no", true, "smtp_550"},
		"recipient unknown":     {"RCPT b@example.com", "550 no such user: <b@example.com>", true, "smtp_550"},
		"recipient in capitals": {"RCPT b@example.com", "550 no such user: <B@EXAMPLE.COM>", true, "smtp_550"},
		"another beside it":     {"RCPT b@example.com", "550 no such user: <b@example.com.org>", true, "smtp_550"},
		"no answer of SMTP":     {"RCPT b@example.com", "who is b@example.com?", false, ""},
		"recipient quoted":      {`RCPT "b b"@example.com`, `550 no such user: <"B b"@example.com>, b b@example.com`, true, "smtp_550"},
		"recipient greylisted":  {"RCPT b@example.com", "450 later", false, "smtp_450"},
		"data refused":          {"DATA", "554 no", true, "smtp_554"},
		"letter is spam":        {".", "550 spam", true, "smtp_550"},
		"disk full":             {".", "452 full", false, "smtp_452"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := startMailServer(t, func(s *mailServer) { s.answers[c.verb] = c.answer })
			m := mailer{settings: s.settings("starttls")}
			m.settings.username, m.settings.password = "jobs", "secret"
			err := m.sendEmail(t.Context(), emailJob(t, `{"to": "a@example.com, b@example.com, b@example.com.org, \"b b\"@example.com", "subject": "s", "text": "t"}`))
			require.Error(t, err)
			require.NotRegexp(t, `(?i)b"?@example|….org`, err.Error(), "an error tells nothing of the payload")
			require.Equal(t, c.permanent, permanent(err))
			require.Equal(t, c.code, smtpCode(err, ""))
			require.Empty(t, s.received(), "all recipients or none")
		})
	}
}

func TestADoneLetterIsDoneWhateverTheServerSaysToQuit(t *testing.T) {
	s := startMailServer(t, func(s *mailServer) { s.answers["QUIT"] = "500 what" })
	m := mailer{settings: s.settings("none")}
	require.NoError(t, m.sendEmail(t.Context(), emailJob(t, `{"to": "a@example.com", "subject": "s", "text": "t"}`)))
}

func TestNothingGoesInClearUnlessConfigured(t *testing.T) {
	j := emailJob(t, `{"to": "a@example.com", "subject": "s", "text": "t"}`)
	stripped := startMailServer(t, func(s *mailServer) { s.offer = nil; s.answers["STARTTLS"] = "502 what" })
	m := mailer{settings: stripped.settings("starttls")}
	err := m.sendEmail(t.Context(), j)
	require.ErrorContains(t, err, "starttls")
	require.False(t, permanent(err))

	foreign := startMailServer(t, nil)
	m = mailer{settings: foreign.settings("starttls")}
	m.settings.roots = nil
	require.ErrorContains(t, m.sendEmail(t.Context(), j), "certificate")
	require.Empty(t, append(stripped.received(), foreign.received()...))
}

func TestAPasswordGoesInClearToThisMachineOnly(t *testing.T) {
	for host, told := range map[string]bool{"127.0.0.1": true, "mail.example.com": false} {
		s := startMailServer(t, nil)
		settings := s.settings("none")
		conn, err := net.Dial("tcp", net.JoinHostPort(settings.host, settings.port))
		require.NoError(t, err)
		defer conn.Close()
		settings.host, settings.username, settings.password = host, "jobs", "secret"
		_, err = connect(t.Context(), conn, settings)
		if told {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "unencrypted connection")
	}
}

func TestACertificateOfOnesOwnIsTrustedByFile(t *testing.T) {
	s := startMailServer(t, nil)
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, s.pem, 0o600))
	environment := map[string]string{
		"SMTP_HOST": "127.0.0.1", "SMTP_PORT": s.settings("").port, "SMTP_FROM": "Jobs <jobs@example.org>", "SMTP_CA_FILE": file,
	}
	m := newMailer(func(name string) string { return environment[name] })
	j := emailJob(t, `{"to": "a@example.com", "subject": "s", "html": "<p>t</p>"}`)
	require.NoError(t, m.sendEmail(t.Context(), j))
	require.Len(t, s.received(), 1)
	require.True(t, s.received()[0].encrypted)

	message, body := parse(t, s.received()[0])
	require.Equal(t, "text/html; charset=utf-8", message.Header.Get("Content-Type"))
	require.Equal(t, "<p>t</p>\n", unquote(t, strings.NewReader(body)))
	require.Equal(t, `"Jobs" <jobs@example.org>`, message.Header.Get("From"))
	sent, err := message.Header.Date()
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), sent, time.Minute)
}

func TestAServerThatDoesNotAnswerIsLeftInTime(t *testing.T) {
	for _, verb := range []string{"CONNECT", "EHLO", "DATA", "."} {
		t.Run(verb, func(t *testing.T) {
			s := startMailServer(t, func(s *mailServer) { s.silent = verb })
			m := mailer{settings: s.settings("none")}
			ctx, stop := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			j := emailJob(t, `{"to": "a@example.com", "subject": "s", "text": "t"}`)
			go func() { ended <- m.sendEmail(ctx, j) }()
			<-s.asked
			stop(plugin.ErrCanceled)
			select {
			case err := <-ended:
				require.Error(t, err)
				require.False(t, permanent(err))
			case <-time.After(patience):
				require.Fail(t, "it goes on waiting")
			}
		})
	}
}

func TestNoServerIsNoReasonToGiveUp(t *testing.T) {
	s := startMailServer(t, nil)
	m := mailer{settings: s.settings("none")}
	m.settings.port = "1"
	err := m.sendEmail(t.Context(), emailJob(t, `{"to": "a@example.com", "subject": "s", "text": "t"}`))
	require.Error(t, err)
	require.False(t, permanent(err))
}

func TestMailSettings(t *testing.T) {
	cases := map[string]struct {
		env     map[string]string
		problem string
	}{
		"the least":     {map[string]string{"SMTP_HOST": "h", "SMTP_FROM": "a@b"}, ""},
		"no host":       {map[string]string{"SMTP_FROM": "a@b"}, "SMTP_HOST"},
		"no sender":     {map[string]string{"SMTP_HOST": "h"}, "SMTP_FROM is not set"},
		"no CA file":    {map[string]string{"SMTP_HOST": "h", "SMTP_FROM": "a@b", "SMTP_CA_FILE": "/nowhere/ca.pem"}, "SMTP_CA_FILE"},
		"an odd CA":     {map[string]string{"SMTP_HOST": "h", "SMTP_FROM": "a@b", "SMTP_CA_FILE": "email_test.go"}, "no certificate"},
		"an odd sender": {map[string]string{"SMTP_HOST": "h", "SMTP_FROM": "a"}, "SMTP_FROM is not of the form jobs@example.org"},
		"an odd port":   {map[string]string{"SMTP_HOST": "h", "SMTP_FROM": "a@b", "SMTP_PORT": "mail"}, "SMTP_PORT"},
		"an odd TLS":    {map[string]string{"SMTP_HOST": "h", "SMTP_FROM": "a@b", "SMTP_TLS": "yes"}, "SMTP_TLS"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMailer(func(name string) string { return c.env[name] })
			if c.problem == "" {
				require.NoError(t, m.problem)
				require.Equal(t, "587", m.settings.port)
				require.Equal(t, "starttls", m.settings.tls)
				return
			}
			err := m.sendEmail(t.Context(), plugin.Job[emailArgs]{})
			require.ErrorContains(t, err, c.problem)
			require.False(t, permanent(err), "the operator can cure it")
		})
	}
}
