package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
)

// guardFor decides who may call the API on the address. Its error says why the API
// must not listen there.
func (p *program) guardFor(cfg config.Config, address net.Addr, log *slog.Logger) (*guard.Guard, error) {
	access, err := p.accessFor(cfg.Security, isPublic(address), log)
	if err != nil {
		return nil, err
	}
	exempt, _ := config.Networks(cfg.RateLimit.Exempt) // config.Load has checked them.
	proxies, _ := config.Networks(cfg.Server.TrustedProxies)
	quotas := map[guard.Limit]int{}
	if cfg.RateLimit.Enabled {
		quotas[guard.Jobs] = cfg.RateLimit.JobsPerMinute
		quotas[guard.Requeue] = cfg.RateLimit.RequeuePerMinute
		quotas[guard.Reads] = cfg.RateLimit.ReadsPerMinute
	}
	return guard.New(guard.Config{
		Access: access, PerMinute: quotas, Exempt: exempt, TrustedProxies: proxies, Log: log,
	}), nil
}

// isPublic reports whether other machines can reach the address.
func isPublic(address net.Addr) bool {
	listening, err := netip.ParseAddrPort(address.String())
	return err != nil || !listening.Addr().Unmap().IsLoopback()
}

// accessFor returns nil when everyone may do everything.
func (p *program) accessFor(cfg config.Security, public bool, log *slog.Logger) (*guard.Access, error) {
	if !cfg.Enabled {
		if public && !cfg.AllowPublic {
			return nil, usageError{errors.New("security.enabled is false and server.address is not a loopback address: " +
				"everyone who reaches it could do everything. Set security.password or security.tokens, " +
				"or security.allow_public=true if you mean it")}
		}
		if public {
			log.Warn("the API is open to everyone who reaches it, because security.enabled is false")
		}
		return nil, nil
	}
	access := &guard.Access{User: cfg.User, Closed: cfg.Closed(public)}
	for _, t := range cfg.Tokens {
		token := guard.Token{Name: t.Name, Digest: t.Digest(), Tenant: t.Tenant}
		for _, scope := range t.Scopes {
			token.Scopes = append(token.Scopes, guard.Scope(scope))
		}
		access.Tokens = append(access.Tokens, token)
	}
	switch {
	case cfg.Password != "":
		access.Password = guard.DigestOf(cfg.Password.Reveal())
	case !public:
		password, err := p.keptPassword(cfg, log)
		if err != nil {
			return nil, err
		}
		access.Password = guard.DigestOf(password.Reveal())
	case len(cfg.Tokens) > 0:
		access.NoPassword = true
	default:
		return nil, usageError{errors.New("server.address is not a loopback address, and there are no credentials: " +
			"set security.password or security.tokens")}
	}
	return access, nil
}

// keptPassword returns the password in the credentials file. The first start creates
// both, and only the process that creates them prints them.
func (p *program) keptPassword(cfg config.Security, log *slog.Logger) (config.Secret, error) {
	kept := config.Credentials{User: cfg.User, Password: config.NewPassword()}
	made, err := kept.Keep(cfg.CredentialsFile)
	var unkept *config.NotKeptError
	where := "kept in " + cfg.CredentialsFile
	switch {
	case errors.As(err, &unkept):
		log.Warn("the credentials could not be stored; the next start creates others", "error", unkept.Err)
		where = "until this program ends"
	case err != nil:
		return "", usageError{fmt.Errorf("security.credentials_file: %w", err)}
	case !made:
		return kept.Password, nil
	}
	_, _ = fmt.Fprintf(p.stdout, "Credentials for operators, %s:\n  user      %s\n  password  %s\n",
		where, kept.User, kept.Password.Reveal())
	return kept.Password, nil
}
