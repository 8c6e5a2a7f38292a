package bundle

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	opabundle "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/keys"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/compiler"
)

// Signing configures the signature of a bundle. The zero Signing creates no signature.
type Signing struct {
	// Key is the private key in PEM, or the secret of an HMAC.
	Key []byte
	// Algorithm is the signature algorithm. "" selects ES256, ES384 or ES512 by the curve of an EC key, and RS256 for an RSA key.
	Algorithm string
	// ID is the key ID in the signature; "" means "default".
	ID string
}

// Build packs the Rego and data below a directory, without tests, into a bundle that a gateway accepts, and returns the names of the
// policies in the bundle. Builds are reproducible except for the signature. An empty revision is replaced by the digest of the files.
func Build(dir, revision string, s *Signing) (archive []byte, names []string, err error) {
	own, err := compiler.ReadDirectory("", files.UnrestrictedPath(dir))
	if err != nil {
		return nil, nil, err
	}
	b := opabundle.Bundle{
		Manifest: opabundle.Manifest{Revision: cmp.Or(revision, own.Digest()[:12]), Roots: &[]string{""}},
		Data:     own.Data(),
	}
	b.Manifest.SetRegoVersion(ast.RegoV1)
	for file, text := range own.Sources() {
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return nil, nil, err
		}
		name = filepath.ToSlash(name)
		module, err := ast.ParseModuleWithOpts(name, text, ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		if err != nil {
			return nil, nil, compiler.LocateErrors("", err)
		}
		b.Modules = append(b.Modules, opabundle.ModuleFile{URL: name, Path: name, Raw: []byte(text), Parsed: module})
	}
	slices.SortFunc(b.Modules, func(x, y opabundle.ModuleFile) int { return cmp.Compare(x.Path, y.Path) })
	if len(s.Key) > 0 {
		algorithm := s.Algorithm
		if algorithm == "" {
			algorithm, err = algorithmOf(s.Key)
		}
		if err == nil && !keys.IsSupportedAlgorithm(algorithm) {
			err = fmt.Errorf("algorithm %q is not supported", algorithm)
		}
		if err == nil {
			err = b.GenerateSignature(opabundle.NewSigningConfig(string(s.Key), algorithm, ""), cmp.Or(s.ID, "default"), false)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("sign the bundle: %w", err)
		}
	}
	var out bytes.Buffer
	if err := opabundle.NewWriter(&out).Write(b); err != nil {
		return nil, nil, err
	}
	read, _, err := (&Config{AllowUnsigned: true}).parse("", out.Bytes(), nil)
	return out.Bytes(), read.Policies(), err
}

// algorithmOf returns the algorithm for a private key in PEM.
func algorithmOf(text []byte) (string, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return "", errors.New("key is not PEM-encoded: specify the algorithm")
	}
	var key any
	var err error
	switch block.Type {
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return "", err
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return "RS256", nil
	case *ecdsa.PrivateKey:
		if name, ok := map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[key.Curve.Params().BitSize]; ok {
			return name, nil
		}
	}
	return "", fmt.Errorf("key type %T is not supported", key)
}
