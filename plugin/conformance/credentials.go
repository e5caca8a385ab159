package conformance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"google.golang.org/grpc/credentials"
)

// certified is how long a certificate is good for: longer than a check takes.
const certified = 24 * time.Hour

// identity is one side of go-plugin's AutoMTLS: a certificate for one launch,
// told to the process in PLUGIN_CLIENT_CERT.
type identity struct {
	certificate tls.Certificate
	pem         string
}

func newIdentity() (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore:    time.Now().Add(-time.Minute), NotAfter: time.Now().Add(certified),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return identity{}, err
	}
	return identity{
		certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem:         string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
	}, nil
}

// trusting are the credentials for a process that has sent its certificate in
// the handshake.
func (i identity) trusting(encoded string) (credentials.TransportCredentials, error) {
	der, err := base64.RawStdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("the certificate is not base64 without padding: %w", err)
	}
	theirs, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("the certificate cannot be read: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(theirs)
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{i.certificate}, RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS12,
	}), nil
}
