package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/client"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
)

// The variables of the commands that speak to the API. They look like keys of
// the configuration, and are not.
const (
	envServer   = envPrefix + "SERVER"
	envToken    = envPrefix + "TOKEN"
	envUser     = envPrefix + "USER"
	envPassword = envPrefix + "PASSWORD"
)

// clients are the commands that speak to the API.
func (p *program) clients() *command.Program {
	return &command.Program{
		Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr,
		Getenv: p.getenv, Now: time.Now, Connect: p.connect, UntilSignal: endOnSignal,
	}
}

// getenv looks the last value up: that is the one which counts.
func (p *program) getenv(name string) string { return variablesOf(p.environ)[name] }

// connect opens the way to the ledger for one command: over HTTP, or within
// the process.
func (p *program) connect(ctx context.Context, to command.Target) (*client.Client, func(), error) {
	if to.Direct {
		return p.connectDirect(ctx, to.Hasty)
	}
	server := to.Server
	if server == "" {
		server = withoutLineEnd(p.getenv(envServer))
	}
	login, err := p.loginOfEnvironment()
	if err != nil {
		return nil, nil, err
	}
	unknown := login == (client.Login{})
	if server == "" || unknown && isLoopbackURL(server) {
		cfg, err := p.load()
		if err != nil {
			return nil, nil, err
		}
		if server == "" {
			server = "http://" + reachable(hostPort(cfg.Server.Address))
		}
		if unknown {
			login = loginOfFile(server, cfg.Security)
		}
	}
	api, err := client.New(client.Config{Server: server, Login: login, Agent: agent()})
	if err != nil {
		return nil, nil, usageError{err}
	}
	return api, api.Close, nil
}

func agent() string { return "holdfast-orchestrator/" + thisBuild().Version }

// loginOfEnvironment returns the credentials in the environment. Its errors name
// the variable and never have the value.
func (p *program) loginOfEnvironment() (client.Login, error) {
	values := map[string]string{}
	for _, name := range []string{envToken, envUser, envPassword} {
		values[name] = withoutLineEnd(p.getenv(name))
		if strings.ContainsFunc(values[name], unicode.IsControl) {
			return client.Login{}, usageError{errors.New(name + " holds a line break or another control character; is it the content of the wrong file?")}
		}
	}
	token := values[envToken]
	switch {
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return client.Login{}, usageError{errors.New(envToken + " holds a character that no header can carry; tokens are letters and digits")}
	case token != "":
		return client.Login{Token: token, Source: "in " + envToken}, nil
	case values[envUser] == "" && values[envPassword] == "":
		return client.Login{}, nil
	}
	return client.Login{User: values[envUser], Password: values[envPassword], Source: "in " + envUser + " and " + envPassword}, nil
}

// loginOfFile takes the credentials that a server on this machine has made for
// itself. No other server gets them. Without them a server answers what it
// answers to anybody.
func loginOfFile(server string, cfg securityConfig) client.Login {
	if !isLoopbackURL(server) {
		return client.Login{}
	}
	kept := credentials{user: cfg.User}
	err := kept.read(cfg.CredentialsFile)
	switch {
	case err == nil:
		return client.Login{User: kept.user, Password: kept.password.reveal(), Source: "in " + cfg.CredentialsFile}
	case errors.Is(err, fs.ErrNotExist):
		return client.Login{Source: "There are none in " + cfg.CredentialsFile}
	}
	var path *os.PathError
	if errors.As(err, &path) {
		err = fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return client.Login{Source: "The credentials file cannot be used: " + err.Error()}
}

// isLoopbackURL reports whether the server is on this machine.
func isLoopbackURL(server string) bool {
	parsed, err := url.Parse(server)
	if err != nil {
		return false
	}
	host := strings.ToLower(parsed.Hostname())
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// hostPort is an address of the configuration.
type hostPort string

var _ net.Addr = hostPort("")

// Network is that of the API.
func (hostPort) Network() string { return "tcp" }

func (a hostPort) String() string { return string(a) }
