package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// letter is a message and its envelope. The addresses are not quoted.
type letter struct {
	from       string
	recipients []string
	message    []byte
}

// ours are the headers that a payload cannot set. emailSchema excludes them too.
var ours = []string{
	"From", "Sender", "To", "Cc", "Bcc", "Reply-To", "Subject", "Date", "Message-Id", "Return-Path", "Received",
	"Mime-Version", "Content-Type", "Content-Transfer-Encoding", "Content-Disposition",
}

// compose makes the message (RFC 5322, MIME). Its id is made from the job's id and is
// the same in every attempt, so that receivers can recognize a repetition.
func compose(args emailArgs, from mail.Address, jobID string, now time.Time) (letter, error) {
	about, err := args.people()
	if err != nil {
		return letter{}, err
	}
	if len(about.to) == 0 {
		return letter{}, errors.New("there is no recipient")
	}
	if err := check(args); err != nil {
		return letter{}, err
	}
	domain := from.Address[strings.LastIndexByte(from.Address, '@')+1:]
	var text bytes.Buffer
	write := func(name, value string) {
		lines := name + ": " + fold(len(name)+len(": "), value) + "\r\n"
		text.WriteString(lines)
		// fold breaks lines at spaces only, and RFC 5322 has a limit.
		for line := range strings.SplitSeq(lines, "\r\n") {
			if len(line) > 998 {
				err = fmt.Errorf("header %.40s contains a word that is too long", name)
			}
		}
	}
	write("From", from.String())
	write("To", about.to.String())
	if len(about.cc) > 0 {
		write("Cc", about.cc.String())
	}
	if len(about.replyTo) > 0 {
		write("Reply-To", about.replyTo.String())
	}
	write("Subject", encodeWords(args.Subject))
	write("Date", now.Format(time.RFC1123Z))
	write("Message-ID", "<"+jobID+"@"+domain+">")
	for _, name := range slices.Sorted(maps.Keys(args.Headers)) {
		write(name, encodeWords(args.Headers[name]))
	}
	if err != nil {
		return letter{}, err
	}
	text.WriteString("MIME-Version: 1.0\r\n")
	if err := writeBody(&text, args, jobID); err != nil {
		return letter{}, err
	}
	return letter{from: from.Address, recipients: about.recipients(), message: text.Bytes()}, nil
}

func check(args emailArgs) error {
	if args.Text == "" && args.HTML == "" {
		return errors.New("there is neither text nor html")
	}
	if err := checkLine("the subject", args.Subject); err != nil {
		return err
	}
	for name, value := range args.Headers {
		if err := checkHeader(name, value); err != nil {
			return err
		}
		if slices.Contains(ours, textproto.CanonicalMIMEHeaderKey(name)) {
			return fmt.Errorf("header %s cannot be set", name)
		}
	}
	return nil
}

// encodeWords encodes a text in ASCII (RFC 2047).
func encodeWords(text string) string { return mime.QEncoding.Encode("utf-8", text) }

// fold breaks a header's text at spaces, so that lines have at most 78 characters.
func fold(column int, text string) string {
	const width = 78
	var folded strings.Builder
	for i, word := range strings.Split(text, " ") {
		if i > 0 {
			if word != "" && column+1+len(word) > width {
				folded.WriteString("\r\n")
				column = 0
			}
			folded.WriteByte(' ')
			column++
		}
		folded.WriteString(word)
		column += len(word)
	}
	return folded.String()
}

func writeBody(text *bytes.Buffer, args emailArgs, jobID string) error {
	type part struct{ kind, content string }
	var parts []part // Receivers prefer the last one.
	if args.Text != "" {
		parts = append(parts, part{"text/plain; charset=utf-8", args.Text})
	}
	if args.HTML != "" {
		parts = append(parts, part{"text/html; charset=utf-8", args.HTML})
	}
	if len(parts) == 1 {
		fmt.Fprintf(text, "Content-Type: %s\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n", parts[0].kind)
		return quote(text, parts[0].content)
	}
	body := multipart.NewWriter(text)
	sum := sha256.Sum256([]byte(jobID))
	// Quoted-printable never writes "=_", so no content contains it.
	if err := body.SetBoundary("=_" + hex.EncodeToString(sum[:16])); err != nil {
		return err
	}
	fmt.Fprintf(text, "Content-Type: multipart/alternative;\r\n boundary=%q\r\n\r\n", body.Boundary())
	for _, p := range parts {
		w, err := body.CreatePart(textproto.MIMEHeader{"Content-Type": {p.kind}, "Content-Transfer-Encoding": {"quoted-printable"}})
		if err != nil {
			return err
		}
		if err := quote(w, p.content); err != nil {
			return err
		}
	}
	return body.Close()
}

func quote(w io.Writer, content string) error {
	quoting := quotedprintable.NewWriter(w)
	if _, err := io.WriteString(quoting, strings.ReplaceAll(content, "\r\n", "\n")); err != nil {
		return err
	}
	return quoting.Close()
}
