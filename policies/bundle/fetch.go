package bundle

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/compiler"
)

// download is the response from a bundle's location.
type download struct {
	raw       []byte
	etag      string
	unchanged bool
}

// open reads a bundle from disk. It returns no Rego for the zero Path.
func (b *Config) open(org string, file files.Path, admit Admit) (compiler.OrgRego, string, error) {
	if file.IsZero() {
		return compiler.OrgRego{}, "", nil
	}
	raw, err := file.Read(maxBundleBytes)
	if err != nil {
		return compiler.OrgRego{}, "", err // the error names the file
	}
	return b.parse(org, raw, admit)
}

// fetch requests the bundle once.
func (b *Config) fetch(ctx context.Context, etag string) (download, error) {
	if !b.File.IsZero() {
		raw, err := b.File.Read(maxBundleBytes)
		return download{raw: raw}, err
	}
	timeout := cmp.Or(b.Timeout, defaultTimeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := b.URL.Request(ctx, http.MethodGet, http.NoBody)
	if err != nil {
		return download{}, err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	if !b.TokenFile.IsZero() {
		token, err := b.TokenFile.Read(files.MaxToken)
		if err != nil {
			return download{}, fmt.Errorf("token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := b.URL.Client(nil, timeout).Do(req)
	if err != nil {
		return download{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusNotModified:
		return download{unchanged: true}, nil
	case http.StatusOK:
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBundleBytes+1))
		if err == nil && len(raw) > maxBundleBytes {
			err = fmt.Errorf("bundle is larger than %d bytes", maxBundleBytes)
		}
		return download{raw: raw, etag: resp.Header.Get("ETag")}, err
	default:
		return download{}, fmt.Errorf("bundle server responded with status %d", resp.StatusCode)
	}
}
