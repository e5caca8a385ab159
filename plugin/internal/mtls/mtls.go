// Package mtls has the certificates with which a plugin process and its
// orchestrator recognize each other: one for each end, made for one launch, as in
// go-plugin's AutoMTLS.
package mtls

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/credentials"
)

// validFor is longer than any process runs.
const validFor = 30 * 365 * 24 * time.Hour

// host is the name in every certificate. The socket has none.
const host = "localhost"

// Identity is the certificate and key of one end.
type Identity struct{ certificate tls.Certificate }

// New makes an identity.
func New() (Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Identity{}, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(validFor),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Identity{}, err
	}
	return Identity{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, nil
}

// PEM is the orchestrator's certificate in PLUGIN_CLIENT_CERT.
func (i Identity) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.certificate.Certificate[0]}))
}

// Base64 is the process's certificate in the handshake.
func (i Identity) Base64() string {
	return base64.RawStdEncoding.EncodeToString(i.certificate.Certificate[0])
}

// Server has the credentials of a process that admits one orchestrator only: the
// one with this certificate.
func (i Identity) Server(orchestratorPEM string) (credentials.TransportCredentials, error) {
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM([]byte(orchestratorPEM)) {
		return nil, errors.New("the certificate is not PEM")
	}
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{i.certificate}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12,
	}), nil
}

// Client has the credentials for the process with this certificate.
func (i Identity) Client(processBase64 string) (credentials.TransportCredentials, error) {
	der, err := base64.RawStdEncoding.DecodeString(processBase64)
	if err != nil {
		return nil, fmt.Errorf("the certificate is not base64 without padding: %w", err)
	}
	theirs, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("the certificate cannot be read: %w", err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(theirs)
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{i.certificate}, RootCAs: trusted, ServerName: host, MinVersion: tls.VersionTLS12,
	}), nil
}
