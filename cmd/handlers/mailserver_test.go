package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/mail"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mailServer speaks SMTP (RFC 5321) with STARTTLS and AUTH PLAIN.
type mailServer struct {
	listener net.Listener
	tls      *tls.Config
	roots    *x509.CertPool
	// pem is the certificate.
	pem []byte
	// implicit wraps every connection in TLS from the start.
	implicit bool
	// offer lists the extensions.
	offer []string
	// answers replace the usual answer to a verb; "." is the end of the data.
	answers map[string]string
	// silent verbs are never answered.
	silent string

	mu       sync.Mutex
	letters  []received
	sessions sync.WaitGroup
	conns    []net.Conn
	asked    chan string
}

type received struct {
	from      string
	to        []string
	text      string
	encrypted bool
	login     string
	// parameters are what follows the recipients.
	parameters string
}

func startMailServer(t *testing.T, change func(*mailServer)) *mailServer {
	t.Helper()
	s := &mailServer{offer: []string{"STARTTLS", "AUTH PLAIN", "8BITMIME"}, answers: map[string]string{}, asked: make(chan string, 100)}
	s.certify(t)
	if change != nil {
		change(s)
	}
	var err error
	s.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			s.sessions.Go(func() { s.converse(conn) })
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, s.listener.Close())
		<-accepting
		s.mu.Lock()
		for _, conn := range s.conns {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.sessions.Wait()
	})
	return s
}

func (s *mailServer) certify(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	s.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	s.roots = x509.NewCertPool()
	s.roots.AddCert(certificate)
	s.tls = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// settings are those of a client of this server.
func (s *mailServer) settings(tls string) smtpSettings {
	address := s.listener.Addr().(*net.TCPAddr)
	return smtpSettings{
		host: "127.0.0.1", port: strconv.Itoa(address.Port), tls: tls, roots: s.roots,
		from: mail.Address{Name: "Holdfast", Address: "jobs@example.org"},
	}
}

func (s *mailServer) received() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.letters...)
}

func (s *mailServer) converse(conn net.Conn) {
	encrypted := s.implicit
	if encrypted {
		conn = tls.Server(conn, s.tls)
	}
	defer func() { _ = conn.Close() }()
	lines := bufio.NewReader(conn)
	reply := func(verb, usual string) bool {
		if verb == s.silent {
			s.asked <- verb
			_, _ = lines.ReadString('\n') // until the client hangs up
			return false
		}
		if instead, ok := s.answers[verb]; ok {
			usual = instead
		}
		_, _ = fmt.Fprintf(conn, "%s\r\n", usual)
		return usual[0] < '4'
	}
	letter := received{}
	if !reply("CONNECT", "220 test ESMTP") {
		return
	}
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "EHLO":
			_, _ = fmt.Fprintf(conn, "250-test\r\n")
			for _, extension := range s.offer {
				_, _ = fmt.Fprintf(conn, "250-%s\r\n", extension)
			}
			reply(verb, "250 SIZE")
		case "STARTTLS":
			if reply(verb, "220 go on") {
				conn = tls.Server(conn, s.tls)
				lines, encrypted = bufio.NewReader(conn), true
			}
		case "AUTH":
			proof, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "PLAIN "))
			letter.login = strings.Trim(string(proof), "\x00")
			reply(verb, "235 welcome")
		case "MAIL":
			path, _ := pathIn(rest)
			letter = received{from: path, encrypted: encrypted, login: letter.login}
			reply(verb, "250 ok")
		case "RCPT":
			path, parameters := pathIn(rest)
			letter.parameters += parameters
			if reply(verb+" "+path, "250 ok") {
				letter.to = append(letter.to, path)
			}
		case "DATA":
			if !reply(verb, "354 go on") {
				continue
			}
			var text strings.Builder
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				if line == ".\r\n" {
					break
				}
				text.WriteString(strings.TrimPrefix(line, "."))
			}
			letter.text = text.String()
			if reply(".", "250 taken") {
				s.mu.Lock()
				s.letters = append(s.letters, letter)
				s.mu.Unlock()
			}
		case "QUIT":
			reply(verb, "221 bye")
			return
		default:
			reply(verb, "502 what")
		}
	}
}

// pathIn reads the address of a command, which may be quoted before its @, and
// what follows it (RFC 5321, section 4.1.2).
func pathIn(text string) (path, parameters string) {
	_, rest, _ := strings.Cut(text, "<")
	quoted := false
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '>' && !quoted:
			return rest[:i], rest[i+1:]
		}
	}
	return rest, "no end"
}
