package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
)

// mailbox is an SMTP server that accepts everything it is sent.
type mailbox struct {
	listener net.Listener
	received chan mail
}

type mail struct {
	from, to, subject string
}

func openMailbox(ctx context.Context) (*mailbox, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &mailbox{listener: listener, received: make(chan mail, 100)}
	go m.accept()
	return m, nil
}

func (m *mailbox) port() int    { return m.listener.Addr().(*net.TCPAddr).Port }
func (m *mailbox) close() error { return m.listener.Close() }

func (m *mailbox) accept() {
	for {
		conn, err := m.listener.Accept()
		if err != nil {
			return
		}
		go m.converse(conn)
	}
}

// converse speaks just enough SMTP (RFC 5321) to take mail.
func (m *mailbox) converse(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	reply := func(line string) { fmt.Fprintf(conn, "%s\r\n", line) }
	reply("220 demo ESMTP")
	var message mail
	for lines.Scan() {
		line := lines.Text()
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		switch {
		case verb == "EHLO" || verb == "HELO":
			reply("250 demo")
		case verb == "MAIL":
			message = mail{from: address(line)}
			reply("250 ok")
		case verb == "RCPT":
			message.to = address(line)
			reply("250 ok")
		case verb == "DATA":
			reply("354 go on")
			for lines.Scan() && lines.Text() != "." {
				if subject, ok := strings.CutPrefix(lines.Text(), "Subject: "); ok {
					message.subject = subject
				}
			}
			reply("250 taken")
			m.received <- message
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
