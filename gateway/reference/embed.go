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

// Path is the path of the page, AccessPath the path of the data about the reader's key, and RunPath the path of the run
// interface's description, if the run interface is served.
const (
	Path       = "/docs"
	AccessPath = "/docs/access"
	RunPath    = "/docs/run.json"
)

// policy allows the page to execute and fetch only content of this gateway. No scripts or styles are inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// File is one file of the reference.
type File struct {
	// Path is the URL path of the file.
	Path   string
	Header http.Header
	// Body returns the content. It reads the file on first use.
	Body func() []byte
}

// Files returns the files of the reference, beginning with the page.
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

// asset returns a function that reads an embedded file once.
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
