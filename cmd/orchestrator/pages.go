package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/cells"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
)

// servePages serves the web UI of several cells until a signal, and prints a link to it. If only
// one server is named, it returns false.
//
// The pages ask the cells with the credentials of whoever runs the program, so they are for this
// machine only, and need the link or the same credentials.
func (p *program) servePages(parent context.Context, of command.Target, address string) (served bool, err error) {
	servers, err := p.serversOf(of)
	if err != nil || len(servers) < 2 {
		return false, err
	}
	if err := checkLocal(address); err != nil {
		return false, usageError{err}
	}
	login, err := p.loginOfCells(servers)
	if err != nil {
		return false, err
	}
	cfg, err := p.load()
	if err != nil {
		return false, err
	}
	log := newLog(cfg.Log, p.stderr)
	until, release := endOnSignal(parent)
	defer release()
	listener, err := listen(until, address)
	if err != nil {
		return false, err
	}
	defer func() { _ = listener.Close() }()

	network := apiclient.Network()
	defer network.CloseIdleConnections()
	carrier := signed{login, network}
	watch := cells.NewWatch(servers, carrier)
	watch.Look(until)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		watch.Run(until)
	}()
	defer func() { <-watching }()

	access, own := accessOf(login)
	pages := api.NewPages(api.Config{
		Guard: guard.New(guard.Config{Access: access, Log: log}), Logins: guard.NewMemory(), Log: log,
		Version: thisBuild().Version, MaxBodyBytes: cfg.Server.MaxBodyBytes, RequestTimeout: cfg.Server.RequestTimeout,
	}, &cells.Transport{Servers: servers, Carrier: carrier, Watch: watch}, watch)
	server := newServer(cfg.Server, pages, log)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(limited(listener, cfg.Server, log)) }()
	defer func() { _ = server.Close() }()
	defer release() // before the wait for the watch
	if err := p.printLink(until, "http://"+listener.Addr().String(), own); err != nil {
		return true, err
	}
	return true, untilEnded(until, server, ended, log)
}

// untilEnded returns nil when a signal has ended the context.
func untilEnded(until context.Context, server *http.Server, ended <-chan error, log *slog.Logger) error {
	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-until.Done():
	}
	shutDown(context.WithoutCancel(until), server, log)
	return nil
}

// checkLocal refuses an address that other machines reach.
func checkLocal(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsLoopback() {
		return fmt.Errorf("--listen %s is not an address of this machine alone, such as 127.0.0.1:8090; "+
			"the pages act with your credentials, so use a tunnel such as ssh -L to see them from elsewhere", address)
	}
	return nil
}

// accessOf lets in who has the credentials that the cells get, or others that are only in this
// process if the cells need none.
func accessOf(login apiclient.Login) (*guard.Access, apiclient.Login) {
	if login.Token == "" && login.Password == "" {
		login = apiclient.Login{Token: rand.Text()}
	}
	access := &guard.Access{Closed: true, NoPassword: true}
	if login.Token != "" {
		access.Tokens = []guard.Token{{Name: "of orchestrator ui", Digest: guard.DigestOf(login.Token), Scopes: guard.Scopes()}}
	} else {
		access.NoPassword, access.User, access.Password = false, login.User, guard.DigestOf(login.Password)
	}
	return access, login
}

// printLink prints a link that logs a browser in at the pages.
func (p *program) printLink(ctx context.Context, origin string, login apiclient.Login) error {
	pages, err := apiclient.New(apiclient.Config{Server: origin, Login: login, Agent: agent()})
	if err != nil {
		return err
	}
	defer pages.Close()
	answer, err := pages.Post(ctx, "/login-links", nil, nil)
	if err != nil {
		return err
	}
	var link v1.LoginLink
	if err := answer.Into(&link); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, origin+link.Path)
	return err
}

// signed carries requests with credentials.
type signed struct {
	login apiclient.Login
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s signed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", agent())
	s.login.Sign(r)
	return s.next.RoundTrip(r)
}
