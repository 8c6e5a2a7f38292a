package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	opabundle "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

// Limits of a bundle, in bytes unless stated otherwise.
const (
	maxBundleBytes   = 32 << 20 // compressed
	maxUnpackedBytes = 64 << 20 // all files together
	maxBundleFiles   = 2000
)

// Admit returns an error if the Rego of a bundle must not be parsed. rego maps file names to Rego source. A nil Admit permits all Rego.
type Admit func(rego map[string]string) error

// parse verifies a bundle and parses its Rego if admit allows it. Otherwise it returns the error of admit.
func (b *Config) parse(org string, raw []byte, admit Admit) (compiler.OrgRego, string, error) {
	rego, err := checkArchive(raw)
	if err != nil {
		return compiler.OrgRego{}, "", &policyconfig.Error{Org: org, Path: "bundle", Message: err.Error()}
	}
	if admit != nil && len(rego) > 0 {
		if err := admit(rego); err != nil {
			return compiler.OrgRego{}, "", err
		}
	}
	verify, err := b.verification()
	if err != nil {
		return compiler.OrgRego{}, "", &policyconfig.Error{Org: org, Message: err.Error()}
	}
	r := opabundle.NewCustomReader(opabundle.NewTarballLoaderWithBaseURL(bytes.NewReader(raw), "")).
		WithProcessAnnotations(true).WithCapabilities(regosandbox.Capabilities()).WithRegoVersion(ast.RegoV1).
		WithSizeLimitBytes(maxUnpackedBytes)
	if verify != nil {
		r = r.WithBundleVerificationConfig(verify)
	} else {
		r = r.WithSkipBundleVerification(true)
	}
	got, err := r.Read()
	if err != nil {
		return compiler.OrgRego{}, "", compiler.LocateErrors(org, fmt.Errorf("bundle: %w", err))
	}
	sum := sha256.Sum256(raw)
	mine, err := orgRegoOf(org, hex.EncodeToString(sum[:]), &got)
	return mine, got.Manifest.Revision, err
}

// checkArchive limits the unpacked size of a bundle and rejects entries that are not allowed in a bundle: links, devices, duplicate paths
// and paths outside the bundle. It returns the contents of the Rego files by path.
func checkArchive(raw []byte) (rego map[string]string, err error) {
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("archive is not gzipped: %w", err)
	}
	rego = map[string]string{}
	archive := tar.NewReader(io.LimitReader(zip, maxUnpackedBytes+1))
	seen := map[string]bool{}
	var total int64
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return rego, nil
		}
		if err != nil {
			return nil, fmt.Errorf("damaged archive: %w", err)
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		switch {
		case h.Typeflag == tar.TypeDir:
			continue
		case h.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%q is not a regular file", h.Name)
		case slices.Contains(strings.Split(h.Name, "/"), ".."):
			return nil, fmt.Errorf("%q is outside the bundle", h.Name)
		case seen[name]:
			return nil, fmt.Errorf("duplicate file %q", name)
		case len(seen) >= maxBundleFiles:
			return nil, fmt.Errorf("archive contains more than %d files", maxBundleFiles)
		}
		seen[name] = true
		var text strings.Builder
		into := io.Discard
		if strings.HasSuffix(name, opabundle.RegoExt) {
			into = &text
		}
		n, err := io.Copy(into, archive) //nolint:gosec // the archive reads from a limited reader
		if total += n; err != nil || total > maxUnpackedBytes {
			return nil, fmt.Errorf("archive is damaged or larger than %d bytes when unpacked", maxUnpackedBytes)
		}
		if into != io.Discard {
			rego[name] = text.String()
		}
	}
}

// orgRegoOf converts the modules and data of a bundle.
func orgRegoOf(org, digest string, b *opabundle.Bundle) (compiler.OrgRego, error) {
	switch {
	case b.Type() == opabundle.DeltaBundleType:
		return compiler.OrgRego{}, &policyconfig.Error{Org: org, Path: "bundle", Message: "delta bundles cannot be verified: send full bundles"}
	case len(b.WasmModules) > 0 || len(b.Wasm) > 0 || len(b.PlanModules) > 0:
		return compiler.OrgRego{}, &policyconfig.Error{Org: org, Path: "bundle", Message: "compiled policies are not supported: send Rego"}
	}
	rego := make(map[string]string, len(b.Modules))
	for _, m := range b.Modules {
		rego[strings.TrimPrefix(m.Path, "/")] = string(m.Raw)
	}
	return compiler.Parse(org, digest, rego, b.Data)
}

// admit returns an error if the new Rego would disable policies by omitting them. last is the Rego of the last valid bundle, or the zero
// value if there was none.
func (b *Config) admit(org string, last, next compiler.OrgRego) error {
	if b.MayDrop {
		return nil
	}
	have := next.Policies()
	refuse := func(what string) error {
		return &policyconfig.Error{Org: org, Path: "bundle", Message: what + "; set bundle.may_drop to allow this"}
	}
	if len(have) == 0 {
		return refuse("contains no policy, " + compiler.PolicyForms)
	}
	lost := slices.DeleteFunc(last.Policies(), func(name string) bool { return slices.Contains(have, name) })
	if len(lost) > 0 {
		return refuse("no longer contains policies." + strings.Join(lost, ", policies."))
	}
	return nil
}
