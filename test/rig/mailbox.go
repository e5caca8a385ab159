package rig

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
)

// Mailbox is an SMTP server on the loopback that accepts all mail.
type Mailbox struct {
	// Received has the mail. Senders wait while it is full.
	Received chan Mail
	listener net.Listener
}

// Mail is one message.
type Mail struct {
	From, To, Subject string
}

// OpenMailbox listens until Close.
func OpenMailbox(ctx context.Context) (*Mailbox, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &Mailbox{listener: listener, Received: make(chan Mail, 100)}
	go m.accept()
	return m, nil
}

// Environment is the environment in which SEND_EMAIL sends mail here.
func (m *Mailbox) Environment() []string {
	return []string{
		"SMTP_HOST=127.0.0.1", fmt.Sprintf("SMTP_PORT=%d", m.listener.Addr().(*net.TCPAddr).Port),
		"SMTP_TLS=none", "SMTP_FROM=holdfast@example.com",
	}
}

// Close stops listening.
func (m *Mailbox) Close() error { return m.listener.Close() }

func (m *Mailbox) accept() {
	for {
		conn, err := m.listener.Accept()
		if err != nil {
			return
		}
		go m.converse(conn)
	}
}

// converse speaks just enough SMTP (RFC 5321) to accept mail.
func (m *Mailbox) converse(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	reply := func(line string) { fmt.Fprintf(conn, "%s\r\n", line) }
	reply("220 rig ESMTP")
	var message Mail
	for lines.Scan() {
		line := lines.Text()
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		switch {
		case verb == "EHLO" || verb == "HELO":
			reply("250 rig")
		case verb == "MAIL":
			message = Mail{From: address(line)}
			reply("250 ok")
		case verb == "RCPT":
			message.To = address(line)
			reply("250 ok")
		case verb == "DATA":
			reply("354 go on")
			for lines.Scan() && lines.Text() != "." {
				if subject, ok := strings.CutPrefix(lines.Text(), "Subject: "); ok {
					message.Subject = subject
				}
			}
			reply("250 taken")
			m.Received <- message
		case verb == "QUIT":
			reply("221 bye")
			return
		default:
			reply("250 ok")
		}
	}
}

func address(line string) string {
	_, rest, _ := strings.Cut(line, "<")
	found, _, _ := strings.Cut(rest, ">")
	return found
}
