package ui

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
)

// templates returns the page templates by name, for each path of a console. Each template includes the layout and the components. Links in
// the templates begin with the path.
//
//nolint:gochecknoglobals // built once from embedded files
var templates = map[string]func() map[string]*template.Template{
	Path:     sync.OnceValue(func() map[string]*template.Template { return parse(Path) }),
	teamPath: sync.OnceValue(func() map[string]*template.Template { return parse(teamPath) }),
}

func parse(base string) map[string]*template.Template {
	shell, out := newShell(base), make(map[string]*template.Template)
	for _, file := range glob("pages/*.html") {
		out[strings.TrimSuffix(path.Base(file), ".html")] = template.Must(template.Must(shell.Clone()).ParseFS(assets, file))
	}
	return out
}

// newShell returns the layout and the components of a console with the given path.
func newShell(base string) *template.Template {
	return template.Must(template.New("shell").Funcs(functions(base)).ParseFS(assets, "assets/shell/*.html"))
}

// functions returns the template functions of a console with the given path. They are stateless; methods of [frame] provide data of the
// request.
func functions(base string) template.FuncMap {
	return template.FuncMap{
		"amount": amount, "stamp": stamp, "moment": moment,
		"pretty": pretty, "join": strings.Join, "title": title, "plural": plural, "status": statusOf,
		"note":   func(level, text string) note { return note{level, text} },
		"codeOf": func(label, text string) *code { return &code{label, text} }, "escape": url.PathEscape,
		"asset": func(name string) string { return base + asset(name) },
		"logTime": func(text string) string {
			at, _ := time.Parse(time.RFC3339Nano, text) // an invalid time is shown as it is
			return cmp.Or(moment(at), text)
		},
		"sentence": upper, "readable": readable, "member": memberName,
		"both": func(f *frame, e any) map[string]any { return map[string]any{"F": f, "E": e} },
	}
}

// glob returns the names of embedded files that match a pattern, in sorted order.
func glob(pattern string) []string {
	files, err := fs.Glob(assets, "assets/"+pattern)
	if err != nil || len(files) == 0 {
		panic("ui: no files " + pattern) // the files are embedded
	}
	return files
}

// static is a file that is served without login.
type static struct {
	media string
	text  []byte
	// version depends on the content, so that browsers can cache the file for a long time.
	version string
}

// statics returns the static files by name. The stylesheet and the script are each concatenated from several files.
//
//nolint:gochecknoglobals // built once from embedded files
var statics = sync.OnceValue(func() map[string]static {
	return map[string]static{
		"style.css":  newStatic("text/css; charset=utf-8", "style/*.css"),
		"console.js": newStatic("text/javascript; charset=utf-8", "script/*.js"),
		"icon.svg":   newStatic("image/svg+xml", "static/icon.svg"),
		"icons.svg":  newStatic("image/svg+xml", "static/icons.svg"),
	}
})

func newStatic(media, pattern string) static {
	s := static{media: media}
	for _, name := range glob(pattern) {
		text, err := assets.ReadFile(name)
		if err != nil {
			panic(err) // the file is embedded
		}
		s.text = append(s.text, text...)
	}
	sum := sha256.Sum256(s.text)
	s.version = hex.EncodeToString(sum[:6])
	return s
}

// asset returns the address of a static file, relative to the console, with its version.
func asset(name string) string { return name + "?v=" + statics()[name].version }

// file serves a static file. Browsers may cache it for a year if the address contains its version, otherwise for five minutes.
func file(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := statics()[name]
		w.Header().Set("Content-Type", s.media)
		w.Header().Set("Cache-Control", "max-age=300")
		if r.FormValue("v") == s.version {
			w.Header().Set("Cache-Control", "max-age=31536000, immutable")
		}
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(s.text))
	}
}

// render writes a page with a status. If the template fails, which indicates a bug, it responds with status 500.
func (v *visit) render(status int, name string, f frame) {
	var page bytes.Buffer
	f.visit, f.Done = v, v.take()
	if err := templates[v.path]()[name].ExecuteTemplate(&page, "layout", &f); err != nil {
		v.logger.ErrorContext(v.r.Context(), "console page failed to render", "page", name, "error", err)
		http.Error(v.w, "The page failed to render.", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(page.Bytes()) // the client disconnected
}

// fail writes an error page with the given reason.
func (v *visit) fail(status int, reason string) {
	v.render(status, "fault", frame{Title: faultTitle(status), Fault: reason})
}

// faultTitle returns the title of an error page.
func faultTitle(status int) string { return upper(strings.ToLower(http.StatusText(status))) }
