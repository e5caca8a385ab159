package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// secretPrefix begins every secret, so that people and scanners recognise it.
const secretPrefix = "whsec_"

// The bounds of a secret's bytes, as Standard Webhooks has them.
const (
	minSecretBytes = 24
	maxSecretBytes = 64
)

// keys sign a delivery: each makes a signature, so that a secret can be replaced without a
// delivery that the receiver refuses.
type keys [][]byte

// signingKeys are the keys of each tenant.
type signingKeys struct {
	usual   keys
	tenants map[string]keys
	// unsigned allows deliveries without a signature where there is no secret.
	unsigned bool
}

// readSigningKeys reads WEBHOOK_SECRETS, which has secrets separated by blanks or commas,
// and WEBHOOK_TENANT_SECRETS, which is a JSON object with such a text for each tenant. Its
// errors contain no part of a secret.
func readSigningKeys(getenv func(string) string) (signingKeys, error) {
	read := signingKeys{unsigned: getenv("WEBHOOK_UNSIGNED") == "true", tenants: make(map[string]keys)}
	var err error
	if read.usual, err = parseSecrets(getenv("WEBHOOK_SECRETS")); err != nil {
		return signingKeys{}, fmt.Errorf("WEBHOOK_SECRETS: %w", err)
	}
	text := getenv("WEBHOOK_TENANT_SECRETS")
	if text == "" {
		return read, nil
	}
	var byTenant map[string]string
	if json.Unmarshal([]byte(text), &byTenant) != nil {
		return signingKeys{}, errors.New(`WEBHOOK_TENANT_SECRETS is not a JSON object such as {"acme": "whsec_…"}`)
	}
	for tenant, secrets := range byTenant {
		if read.tenants[tenant], err = parseSecrets(secrets); err != nil {
			return signingKeys{}, fmt.Errorf("WEBHOOK_TENANT_SECRETS: tenant %q: %w", tenant, err)
		}
		if len(read.tenants[tenant]) == 0 {
			return signingKeys{}, fmt.Errorf("WEBHOOK_TENANT_SECRETS: tenant %q has no secret", tenant)
		}
	}
	return read, nil
}

func parseSecrets(text string) (all keys, err error) {
	for i, secret := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' }) {
		encoded, found := strings.CutPrefix(secret, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !found || err != nil || len(key) < minSecretBytes || len(key) > maxSecretBytes {
			return nil, fmt.Errorf("secret %d is not %s and the base64 of %d to %d random bytes; make one with: "+
				`echo "%s$(openssl rand -base64 32)"`, i+1, secretPrefix, minSecretBytes, maxSecretBytes, secretPrefix)
		}
		all = append(all, key)
	}
	return all, nil
}

// of returns the keys of a tenant: its own, or else those of all.
func (s signingKeys) of(tenant string) (keys, error) {
	if own := s.tenants[tenant]; len(own) > 0 {
		return own, nil
	}
	if len(s.usual) == 0 && !s.unsigned {
		return nil, errors.New("there is no secret to sign with: set WEBHOOK_SECRETS in the environment of the plugin, " +
			"or WEBHOOK_UNSIGNED=true to deliver without a signature")
	}
	return s.usual, nil
}

// sign returns the value of the header Webhook-Signature.
func (k keys) sign(id, timestamp string, body []byte) string {
	signatures := make([]string, len(k))
	for i, key := range k {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
