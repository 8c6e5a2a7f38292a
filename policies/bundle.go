package policies

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/keys"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Bundle says where an organisation's own Rego comes from as an OPA bundle.
type Bundle struct {
	// URL is where the bundle is polled, http or https. One of URL and File is
	// required.
	URL string `yaml:"url"`
	// File is a bundle on disk, looked at as often.
	File string `yaml:"file"`
	// Poll is the time between looks; a tenth more or less is added by chance,
	// and failures double it up to ten times. Default 1m.
	Poll time.Duration `yaml:"poll"`
	// Timeout bounds one download. Default 30s.
	Timeout time.Duration `yaml:"timeout"`
	// TokenFile holds a bearer token for URL, read at every look. Default: none.
	TokenFile string `yaml:"token_file"`
	// Key verifies the bundle's signature. Required unless AllowUnsigned.
	Key *BundleKey `yaml:"key"`
	// AllowUnsigned takes bundles without looking at signatures.
	AllowUnsigned bool `yaml:"allow_unsigned"`
	// Persist is a file that keeps the last good bundle for the next start.
	// Default: none.
	Persist string `yaml:"persist"`
	// MayDrop takes a bundle that holds no policy, or that lacks one the last
	// good bundle had. Without it such a bundle is refused, since policies are
	// switched on by being there. What an entry or an exception names must be
	// there in any case. Default: false.
	MayDrop bool `yaml:"may_drop"`
}

// BundleKey verifies signatures.
type BundleKey struct {
	// ID is the key's name; a signature may name it.
	ID string `yaml:"id"`
	// File holds the public key in PEM, or the secret of an HMAC.
	File string `yaml:"file"`
	// Algorithm is the signature's, e.g. ES256. Default RS256.
	Algorithm string `yaml:"algorithm"`
	// Scope must equal the signature's. Default: none.
	Scope string `yaml:"scope"`
}

// What a bundle may weigh.
const (
	maxBundleBytes   = 32 << 20 // as sent
	maxUnpackedBytes = 64 << 20 // all files together
	maxBundleFiles   = 2000
)

// validate reports the faults of the section.
func (b *Bundle) validate() []error {
	if b == nil {
		return nil
	}
	var errs []error
	bad := func(path, format string, args ...any) {
		errs = append(errs, fault.At("bundle", fault.Errorf(path, format, args...)))
	}
	if (b.URL == "") == (b.File == "") {
		bad("", "one of url and file is required")
	}
	if b.URL != "" {
		u, err := url.Parse(b.URL)
		switch {
		case err != nil:
			bad("url", "not a URL")
		case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.User != nil:
			bad("url", "must be http or https with a host and without credentials")
		}
	}
	if b.Poll < 0 {
		bad("poll", "must not be negative, got %s", b.Poll)
	}
	if b.Timeout < 0 {
		bad("timeout", "must not be negative, got %s", b.Timeout)
	}
	switch {
	case b.Key == nil && !b.AllowUnsigned:
		bad("key", "is required, or allow_unsigned must say that signatures do not matter")
	case b.Key != nil && b.AllowUnsigned:
		bad("allow_unsigned", "contradicts key")
	case b.Key != nil:
		if b.Key.File == "" {
			bad("key.file", "is required")
		}
		if b.Key.Algorithm != "" && !keys.IsSupportedAlgorithm(b.Key.Algorithm) {
			bad("key.algorithm", "%q is not supported", b.Key.Algorithm)
		}
	}
	return errs
}

// The defaults of a bundle section.
const (
	defaultPoll    = time.Minute
	defaultTimeout = 30 * time.Second
)

// verification loads the key. The keyless config verifies nothing.
func (b *Bundle) verification() (*bundle.VerificationConfig, error) {
	if b.Key == nil {
		return nil, nil
	}
	pem, err := os.ReadFile(b.Key.File)
	if err != nil {
		return nil, fmt.Errorf("bundle key: %w", err)
	}
	algorithm := b.Key.Algorithm
	if algorithm == "" {
		algorithm = "RS256"
	}
	id := b.Key.ID
	if id == "" {
		id = "default"
	}
	key := &bundle.KeyConfig{Key: string(pem), Algorithm: algorithm, Scope: b.Key.Scope}
	return bundle.NewVerificationConfig(map[string]*bundle.KeyConfig{id: key}, id, b.Key.Scope, nil), nil
}

// parse reads and verifies a bundle.
func (b *Bundle) parse(org string, raw []byte) (own, string, error) {
	if err := checkArchive(raw); err != nil {
		return own{}, "", &LoadError{Org: org, Message: "bundle: " + err.Error()}
	}
	verify, err := b.verification()
	if err != nil {
		return own{}, "", &LoadError{Org: org, Message: err.Error()}
	}
	r := bundle.NewCustomReader(bundle.NewTarballLoaderWithBaseURL(bytes.NewReader(raw), "")).
		WithProcessAnnotations(true).WithCapabilities(Capabilities()).WithRegoVersion(ast.RegoV1).
		WithSizeLimitBytes(maxUnpackedBytes)
	if verify != nil {
		r = r.WithBundleVerificationConfig(verify)
	} else {
		r = r.WithSkipBundleVerification(true)
	}
	got, err := r.Read()
	if err != nil {
		return own{}, "", loadErrors(org, fmt.Errorf("bundle: %w", err), func(string) string { return "" })
	}
	mine, err := ownOfBundle(org, &got)
	sum := sha256.Sum256(raw)
	mine.digest = hex.EncodeToString(sum[:])
	return mine, got.Manifest.Revision, err
}

// checkArchive bounds what a bundle unpacks to, and refuses what has no place
// in one: links, devices, the same path twice, paths that lead out.
func checkArchive(raw []byte) error {
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("not a gzipped archive: %w", err)
	}
	archive := tar.NewReader(io.LimitReader(zip, maxUnpackedBytes+1))
	seen := map[string]bool{}
	var total int64
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("damaged archive: %w", err)
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		switch {
		case h.Typeflag == tar.TypeDir:
			continue
		case h.Typeflag != tar.TypeReg:
			return fmt.Errorf("%q is not a regular file", h.Name)
		case slices.Contains(strings.Split(h.Name, "/"), ".."):
			return fmt.Errorf("%q leads out of the bundle", h.Name)
		case seen[name]:
			return fmt.Errorf("%q is there twice", name)
		case len(seen) >= maxBundleFiles:
			return fmt.Errorf("more than %d files", maxBundleFiles)
		}
		seen[name] = true
		n, err := io.Copy(io.Discard, archive) //nolint:gosec // the archive reads from a limited reader
		if total += n; err != nil || total > maxUnpackedBytes {
			return fmt.Errorf("more than %d bytes, or a damaged archive", maxUnpackedBytes)
		}
	}
}

// ownOfBundle takes over modules and data of a bundle that was read.
func ownOfBundle(org string, b *bundle.Bundle) (own, error) {
	switch {
	case b.Type() == bundle.DeltaBundleType:
		return own{}, &LoadError{Org: org, Message: "bundle: delta bundles cannot be verified, send whole ones"}
	case len(b.WasmModules) > 0 || len(b.Wasm) > 0 || len(b.PlanModules) > 0:
		return own{}, &LoadError{Org: org, Message: "bundle: compiled policies are not taken, send Rego"}
	}
	o := own{modules: map[string]*ast.Module{}, sources: map[string]string{}, data: map[string]any{}}
	var faults []error
	for _, m := range b.Modules {
		if strings.HasSuffix(m.Path, "_test.rego") {
			continue
		}
		if err := o.addModule(org, strings.TrimPrefix(m.Path, "/"), string(m.Raw)); err != nil {
			faults = append(faults, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Data)) {
		if name == reservedRoot {
			faults = append(faults, &LoadError{Org: org, Message: "bundle: data.tollgate is reserved for the library"})
			continue
		}
		v, err := plain(b.Data[name])
		if err != nil {
			faults = append(faults, &LoadError{Org: org, Message: "bundle: data." + name + ": " + err.Error()})
		}
		o.data[name] = v
	}
	if len(faults) > 0 {
		return own{}, joinFaults(faults)
	}
	return o, o.misplaced(org)
}

// admit refuses a bundle that would switch policies off by not holding them.
// last is the last good bundle's Rego, the zero value before the first.
func (b *Bundle) admit(org string, last, next own) error {
	if b.MayDrop {
		return nil
	}
	have := next.policies()
	refuse := func(what string) error {
		return &LoadError{Org: org, Message: "bundle: " + what + "; bundle.may_drop takes it all the same"}
	}
	if len(have) == 0 {
		return refuse("holds no policy, " + whatIsAPolicy)
	}
	lost := slices.DeleteFunc(slices.Sorted(maps.Keys(last.policies())), func(name string) bool {
		_, kept := have[name]
		return kept
	})
	if len(lost) > 0 {
		return refuse("lacks what the last good one had: " + ownPackage + strings.Join(lost, ", "+ownPackage))
	}
	return nil
}
