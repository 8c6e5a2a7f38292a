package reference_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/reference"
)

// Every file the page or its script asks for is there, whole, and of its type.
func TestFiles(t *testing.T) {
	files, err := reference.Files()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]string{}
	for _, f := range files {
		body := f.Body()
		if f.Header.Get("Content-Encoding") == "gzip" {
			r, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatalf("%s: %v", f.Path, err)
			}
			if body, err = io.ReadAll(r); err != nil {
				t.Fatalf("%s: %v", f.Path, err)
			}
		}
		if len(body) == 0 || f.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %d bytes of type %q", f.Path, len(body), f.Header.Get("Content-Type"))
		}
		served[f.Path] = string(body)
	}
	page, script := served[reference.Path], served[reference.Path+"/docs.js"]
	for _, name := range regexp.MustCompile(`"/docs/([a-z-]+\.(?:js|css))"`).FindAllStringSubmatch(page, -1) {
		if served[reference.Path+"/"+name[1]] == "" {
			t.Errorf("the page asks for %s, which is not served", name[1])
		}
	}
	loads := regexp.MustCompile(`load\("([^"]+)"\)`).FindAllStringSubmatch(script, -1)
	if len(loads) < 6 {
		t.Errorf("the script loads %d files, want 6 or more", len(loads))
	}
	for _, name := range loads {
		if served[reference.Path+"/"+name[1]] == "" {
			t.Errorf("the script loads %s, which is not served", name[1])
		}
	}
	if strings.Contains(page, "<script>") || regexp.MustCompile(`(src|href)="https?:`).MatchString(page) {
		t.Errorf("the page has inline scripts or asks others:\n%s", page)
	}
}
