package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/tollgate-dev/tollgate/policies/load"
)

// look is the answer of a place.
type look struct {
	raw       []byte
	etag      string
	unchanged bool
}

// open reads a bundle on disk; "" is none.
func (b *Config) open(org, file string, admit Admit) (load.OrgRego, string, error) {
	if file == "" {
		return load.OrgRego{}, "", nil
	}
	raw, err := readBundleFile(file)
	if err != nil {
		return load.OrgRego{}, "", err // it names the file
	}
	return b.parse(org, raw, admit)
}

func readBundleFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readBounded(f)
}

func readBounded(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxBundleBytes+1))
	if err == nil && len(raw) > maxBundleBytes {
		err = fmt.Errorf("larger than %d bytes", maxBundleBytes)
	}
	return raw, err
}

// fetch looks at the bundle's place once.
func (b *Config) fetch(ctx context.Context, client *http.Client, etag string) (look, error) {
	if b.File != "" {
		raw, err := readBundleFile(b.File)
		return look{raw: raw}, err
	}
	timeout := cmp.Or(b.Timeout, defaultTimeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL, http.NoBody)
	if err != nil {
		return look{}, err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	if b.TokenFile != "" {
		token, err := os.ReadFile(b.TokenFile)
		if err != nil {
			return look{}, fmt.Errorf("token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := client.Do(req)
	if err != nil {
		return look{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusNotModified:
		return look{unchanged: true}, nil
	case http.StatusOK:
		raw, err := readBounded(resp.Body)
		return look{raw: raw, etag: resp.Header.Get("ETag")}, err
	default:
		return look{}, fmt.Errorf("the bundle server answered %d", resp.StatusCode)
	}
}

// persist replaces the file at once, so that a crash leaves the old or the new
// bundle.
func persist(file string, raw []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".bundle-*")
	if err != nil {
		return fmt.Errorf("keeping the bundle: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone after the rename
	_, err = tmp.Write(raw)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("keeping the bundle: %w", err)
	}
	return nil
}
