package reference

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed assets
var assets embed.FS

// Path is the path of the page. AccessPath is the path of the [Access] for the reader's key. RunPath is the path of the API description of
// the run interface, which exists only if the gateway serves the run interface.
const (
	Path       = "/docs"
	AccessPath = "/docs/access"
	RunPath    = "/docs/run.json"
)

// policy is the Content-Security-Policy of the page. It permits the page to load, execute and fetch only content of this gateway. The page
// has no inline scripts or styles.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// File is a file of the API reference.
type File struct {
	// Path is the URL path of the file.
	Path   string
	Header http.Header
	// Body returns the content, which is read on first use.
	Body func() []byte
}

// Files returns the files of the API reference. The first file is the page.
func Files() ([]File, error) {
	files := []File{{Path: Path, Body: asset("docs.html"), Header: http.Header{
		"Content-Type":            {"text/html; charset=utf-8"},
		"Content-Security-Policy": {policy},
		"Referrer-Policy":         {"no-referrer"},
		"Cache-Control":           {"no-cache"},
	}}}
	entries, err := fs.ReadDir(assets, "assets")
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	for _, e := range entries {
		name, compressed := strings.CutSuffix(e.Name(), ".gz")
		contentType, served := contentTypes[path.Ext(name)]
		if !served {
			continue
		}
		h := http.Header{"Content-Type": {contentType}, "Cache-Control": {"max-age=300"}}
		if compressed {
			h.Set("Content-Encoding", "gzip")
		}
		files = append(files, File{Path: Path + "/" + name, Header: h, Body: asset(e.Name())})
	}
	return files, nil
}

// asset returns a function that returns the content of an embedded file. It reads the file only once.
func asset(name string) func() []byte {
	return sync.OnceValue(func() []byte {
		body, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // the file is embedded
		}
		return body
	})
}

// contentTypes maps file extensions to media types.
var contentTypes = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
}
