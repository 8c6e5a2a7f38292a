package encryption

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
)

// Config returns a new TLS configuration for TLS 1.2 and later. For TLS 1.2, it permits only cipher suites with forward secrecy and
// authenticated encryption (RFC 9325, section 4.2). All cipher suites of TLS 1.3 have these properties.
func Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	}
}

// Cipher returns AES-256-GCM with a key that HKDF (RFC 5869) derives from secret and purpose. Seal generates a random nonce and prepends
// the nonce to the ciphertext.
func Cipher(secret []byte, purpose string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "tollgate "+purpose, 32)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("create a cipher: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}
