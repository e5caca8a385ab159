package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// smtpSettings come from the environment: SMTP_HOST, SMTP_PORT (default 587), SMTP_TLS
// (starttls, implicit or none; default starttls), SMTP_CA_FILE, SMTP_USERNAME,
// SMTP_PASSWORD and SMTP_FROM.
type smtpSettings struct {
	host, port         string
	tls                string
	username, password string
	from               mail.Address
	// roots are the certificate authorities; nil for the system's.
	roots *x509.CertPool
}

func readSMTPSettings(getenv func(string) string) (smtpSettings, error) {
	s := smtpSettings{
		host: getenv("SMTP_HOST"), port: cmp.Or(getenv("SMTP_PORT"), "587"), tls: cmp.Or(getenv("SMTP_TLS"), "starttls"),
		username: getenv("SMTP_USERNAME"), password: getenv("SMTP_PASSWORD"),
	}
	if s.host == "" {
		return s, errors.New("SMTP_HOST is not set in the environment of the plugin")
	}
	if _, err := strconv.ParseUint(s.port, 10, 16); err != nil {
		return s, fmt.Errorf("SMTP_PORT %q is not a port", s.port)
	}
	if s.tls != "none" && s.tls != "starttls" && s.tls != "implicit" {
		return s, fmt.Errorf("SMTP_TLS %q is not none, starttls or implicit", s.tls)
	}
	if getenv("SMTP_FROM") == "" {
		return s, errors.New("SMTP_FROM is not set in the environment of the plugin")
	}
	from, err := mail.ParseAddress(getenv("SMTP_FROM"))
	if err != nil {
		return s, errors.New(`SMTP_FROM is not of the form jobs@example.org or "Jobs" <jobs@example.org>`)
	}
	s.from = *from
	if s.roots, err = readRoots(getenv("SMTP_CA_FILE")); err != nil {
		return s, fmt.Errorf("SMTP_CA_FILE: %w", err)
	}
	return s, nil
}

// readRoots reads the certificate authorities, in PEM. It returns nil for no file: the
// system's.
func readRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return roots, nil
}

// deliver sends the letter to all of its recipients or to none. If the server refuses
// the letter (5xx), that is permanent. If it refuses the connection or the credentials,
// the server or the settings are wrong, and a retry may succeed.
func deliver(ctx context.Context, s smtpSettings, l letter) error {
	span := beginDelivery(ctx, s)
	code, err := handOver(ctx, s, l)
	if err != nil {
		span.fail(code)
		return plugin.Code(err, code)
	}
	span.End()
	return nil
}

// handOver returns a code with each error.
func handOver(ctx context.Context, s smtpSettings, l letter) (code string, err error) {
	conn, err := (&net.Dialer{Timeout: 15 * time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(s.host, s.port))
	if err != nil {
		return "no_connection", err
	}
	defer conn.Close()
	// net/smtp does not use contexts, but connections can time out.
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	client, err := connect(ctx, conn, s)
	if err != nil {
		return smtpCode(err, "no_connection"), err
	}
	if err := transfer(client, l); err != nil {
		code := smtpCode(err, "connection_lost")
		if answer := new(textproto.Error); errors.As(err, &answer) && answer.Code/100 == 5 {
			err = plugin.Permanent(err)
		}
		return code, err
	}
	_ = client.Quit() // the server has the letter, whatever it answers
	return "", nil
}

// connect prepares the connection for mail: greeting, TLS, credentials.
func connect(ctx context.Context, conn net.Conn, s smtpSettings) (*smtp.Client, error) {
	secure := &tls.Config{ServerName: s.host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}
	if s.tls == "implicit" {
		encrypted := tls.Client(conn, secure)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		conn = encrypted
	}
	client, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return nil, fmt.Errorf("greeting: %w", err)
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		if err := client.Hello(name); err != nil {
			return nil, fmt.Errorf("hello: %w", err)
		}
	}
	if s.tls == "starttls" {
		// Without it, nothing is sent: an attacker could have removed it.
		if err := client.StartTLS(secure); err != nil {
			return nil, fmt.Errorf("starttls: %w", err)
		}
	}
	if s.username != "" {
		// PlainAuth sends a password without TLS to this machine only.
		if err := client.Auth(smtp.PlainAuth("", s.username, s.password, s.host)); err != nil {
			return nil, fmt.Errorf("auth: %w", err)
		}
	}
	return client, nil
}

func transfer(client *smtp.Client, l letter) error {
	if ok, _ := client.Extension("SMTPUTF8"); !ok && !isASCII(l.from+strings.Join(l.recipients, "")) {
		return plugin.Permanent(errors.New("the server accepts ASCII addresses only"))
	}
	if err := client.Mail(mailbox(l.from)); err != nil {
		return fmt.Errorf("sender %s: %w", l.from, err)
	}
	for i, recipient := range l.recipients {
		if err := client.Rcpt(mailbox(recipient)); err != nil {
			return l.refused(fmt.Sprintf("recipient %d of %d", i+1, len(l.recipients)), err)
		}
	}
	data, err := client.Data()
	if err == nil {
		_, err = data.Write(l.message)
	}
	if err == nil {
		err = data.Close()
	}
	if err != nil {
		return l.refused("data", err)
	}
	return nil
}

// smtpCode is the code of the server's answer, if the error is one.
func smtpCode(err error, otherwise string) string {
	if answer := new(textproto.Error); errors.As(err, &answer) {
		return fmt.Sprintf("smtp_%d", answer.Code)
	}
	return otherwise
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
