package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/cells"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// clients are the commands that call the API.
func (p *program) clients() *command.Program {
	return &command.Program{
		Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr,
		Getenv: p.getenv, Now: time.Now, Connect: p.connect, ServePages: p.servePages, UntilSignal: endOnSignal,
	}
}

// getenv returns the last value of a variable, which is the one that counts.
func (p *program) getenv(name string) string { return config.Variables(p.environ)[name] }

// connect returns a client for one command, over HTTP or within the process.
func (p *program) connect(ctx context.Context, to command.Target) (*apiclient.Client, func(), error) {
	if to.Direct {
		return p.connectDirect(ctx, to.Hasty)
	}
	servers, err := p.serversOf(to)
	if err != nil {
		return nil, nil, err
	}
	if len(servers) > 1 {
		return p.connectCells(servers)
	}
	server := ""
	if len(servers) == 1 {
		server = servers[0].URL
	}
	login, err := p.loginOfEnvironment()
	if err != nil {
		return nil, nil, err
	}
	unknown := login == (apiclient.Login{})
	if server == "" || unknown && isLoopbackURL(server) {
		cfg, err := p.load()
		if err != nil {
			return nil, nil, err
		}
		if server == "" {
			server = "http://" + reachable(cfg.Server.Address)
		}
		if unknown {
			login = loginOfFile(server, cfg.Security)
		}
	}
	settings := apiclient.Config{Server: server, Login: login, Agent: agent()}
	if len(servers) == 1 && servers[0].Cell != (job.Cell{}) {
		settings.Transport = &cells.Named{Server: servers[0], Carrier: apiclient.Network()}
	}
	api, err := apiclient.New(settings)
	if err != nil {
		return nil, nil, usageError{err}
	}
	return api, api.Close, nil
}

// serversOf returns the servers that the command line or the environment names; none for the
// one of the configuration.
func (p *program) serversOf(to command.Target) (named []cells.Server, err error) {
	texts := to.Servers
	switch {
	case to.Cells != "":
		text, err := os.ReadFile(to.Cells)
		if err != nil {
			return nil, err
		}
		if named, err = cells.ReadFile(text); err != nil {
			return nil, usageError{fmt.Errorf("--cells %s: %w", to.Cells, err)}
		}
	case len(texts) == 0:
		texts = strings.FieldsFunc(config.TrimLineEnd(p.getenv(config.EnvServer)), func(r rune) bool { return r == ',' || r == ' ' })
	}
	for _, text := range texts {
		if len(texts) == 1 && !strings.Contains(text, "=") {
			return []cells.Server{{URL: text}}, nil // the client says what is wrong with it
		}
		one, err := cells.ParseServer(text)
		if err != nil {
			return nil, usageError{err}
		}
		named = append(named, one)
	}
	if err := cells.Check(named); err != nil {
		return nil, usageError{err}
	}
	return named, nil
}

// loginOfCells returns the credentials that all servers get: those of the environment or, if
// all are on this machine, those of the credentials file.
func (p *program) loginOfCells(servers []cells.Server) (apiclient.Login, error) {
	login, err := p.loginOfEnvironment()
	afar := slices.ContainsFunc(servers, func(s cells.Server) bool { return !isLoopbackURL(s.URL) })
	if err != nil || login != (apiclient.Login{}) || afar {
		return login, err
	}
	cfg, err := p.load()
	if err != nil {
		return apiclient.Login{}, err
	}
	return loginOfFile(servers[0].URL, cfg.Security), nil
}

// connectCells returns a client of several servers, which all take the same credentials.
func (p *program) connectCells(servers []cells.Server) (*apiclient.Client, func(), error) {
	login, err := p.loginOfCells(servers)
	if err != nil {
		return nil, nil, err
	}
	// Nobody resolves this address, and errors name the server in question.
	api, err := apiclient.New(apiclient.Config{
		Server: "http://cells", Login: login, Agent: agent(), Transport: &cells.Transport{Servers: servers, Carrier: apiclient.Network()},
	})
	if err != nil {
		return nil, nil, err
	}
	return api, api.Close, nil
}

func agent() string { return "holdfast-orchestrator/" + thisBuild().Version }

// loginOfEnvironment returns the credentials in the environment. Its errors name the
// variable and never contain its value.
func (p *program) loginOfEnvironment() (apiclient.Login, error) {
	values := map[string]string{}
	for _, name := range []string{config.EnvToken, config.EnvUser, config.EnvPassword} {
		values[name] = config.TrimLineEnd(p.getenv(name))
		if strings.ContainsFunc(values[name], unicode.IsControl) {
			return apiclient.Login{}, usageError{errors.New(name + " contains a line break or another control character; is it the content of the wrong file?")}
		}
	}
	token := values[config.EnvToken]
	switch {
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return apiclient.Login{}, usageError{errors.New(config.EnvToken + " contains a character that no header can carry; tokens are letters and digits")}
	case token != "":
		return apiclient.Login{Token: token, Source: "in " + config.EnvToken}, nil
	case values[config.EnvUser] == "" && values[config.EnvPassword] == "":
		return apiclient.Login{}, nil
	}
	return apiclient.Login{User: values[config.EnvUser], Password: values[config.EnvPassword], Source: "in " + config.EnvUser + " and " + config.EnvPassword}, nil
}

// loginOfFile returns the credentials that a server on this machine created. No other
// server gets them. Without them the server answers as it answers anyone.
func loginOfFile(server string, cfg config.Security) apiclient.Login {
	if !isLoopbackURL(server) {
		return apiclient.Login{}
	}
	kept := config.Credentials{User: cfg.User}
	err := kept.Read(cfg.CredentialsFile)
	switch {
	case err == nil:
		return apiclient.Login{User: kept.User, Password: kept.Password.Reveal(), Source: "in " + cfg.CredentialsFile}
	case errors.Is(err, fs.ErrNotExist):
		return apiclient.Login{Source: "There are none in " + cfg.CredentialsFile}
	}
	var path *os.PathError
	if errors.As(err, &path) {
		err = fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return apiclient.Login{Source: "The credentials file cannot be used: " + err.Error()}
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
