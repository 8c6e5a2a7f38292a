package dev

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// Limits of a project, and of the child processes that read it.
const (
	maxFiles     = 2000
	maxFileSize  = 256 << 10 // bytes; a syntax tree needs up to 560 times as much
	maxSource    = 16 << 20  // bytes of all Python files
	maxFunctions = 1000
	maxModules   = 8388608 // bytes of the local modules of one function
	maxOutput    = 64 << 20
	readPatience = 30 * time.Second
	wirePatience = 20 * time.Second
)

// Python runs the embedded Python programs. The zero Python has no interpreter and cannot run programs.
type Python struct{ path string }

// FindPython finds python3 in PATH. If python3 is a script, FindPython returns the interpreter that the script starts. Without python3,
// FindPython returns the zero Python.
func FindPython(ctx context.Context) Python {
	path, err := exec.LookPath("python3")
	if err != nil {
		return Python{}
	}
	p := Python{path: path}
	if out, err := p.run(ctx, readPatience, nil, "import sys; print(sys.executable)"); err == nil &&
		filepath.IsAbs(strings.TrimSpace(string(out))) {
		p.path = strings.TrimSpace(string(out))
	}
	return p
}

// Path returns the path of the interpreter, or "" for the zero Python.
func (p Python) Path() string { return p.path }

// run runs a program with a minimal environment and with limits on time and output.
func (p Python) run(ctx context.Context, patience time.Duration, input []byte, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, append([]string{"-I", "-c", program}, args...)...)          //nolint:gosec // the program is embedded, and the interpreter is found in PATH
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, os.TempDir() // scripts that select an interpreter need PATH and HOME
	cmd.Stdin = bytes.NewReader(input)
	cmd.WaitDelay = time.Second
	out, faults := &bounded{left: maxOutput}, &bounded{left: 1 << 16}
	cmd.Stdout, cmd.Stderr = out, faults
	if err := cmd.Run(); err != nil {
		output := strings.TrimSpace(faults.String())
		return nil, fmt.Errorf("python3: %s", cmp.Or(output[strings.LastIndexByte(output, '\n')+1:], err.Error()))
	}
	return out.Bytes(), nil
}

// bounded is a buffer with a maximum size.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("too much output")
	}
	return b.Buffer.Write(p)
}

// Read reads the project in dir. It reports faults in files of the project in [Project.Faults], and returns an error only if the project as
// a whole cannot be read.
func (p Python) Read(ctx context.Context, dir string) (*Project, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("project: %w", err)
	}
	project := &Project{Dir: dir, inputs: inputsOf(dir)}
	project.manifest()
	if p.path != "" {
		if err := p.source(ctx, project); err != nil {
			return nil, fmt.Errorf("read %s: %w", dir, err)
		}
	}
	project.finish()
	return project, nil
}

// inputsOf returns the files of a project to watch for changes.
func inputsOf(dir string) config.Inputs { return config.Tree(dir, ".*", "__pycache__", "node_modules") }

// source reads the Python files.
func (p Python) source(ctx context.Context, project *Project) error {
	out, err := p.run(ctx, readPatience, nil, readProgram(), project.Dir,
		strconv.Itoa(maxFiles), strconv.Itoa(maxFileSize), strconv.Itoa(maxSource), strconv.Itoa(maxFunctions), strconv.Itoa(maxModules))
	if err != nil {
		return err
	}
	var found struct {
		Python string
		Files  []struct {
			Path      string
			Endpoints []*Endpoint
		}
		Modules         map[string]string
		Faults, Notices []Fault
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return err
	}
	project.Python, project.Modules, project.Notices = found.Python, found.Modules, found.Notices
	project.Faults = append(project.Faults, found.Faults...)
	for _, f := range found.Files {
		for _, e := range f.Endpoints {
			e.File, e.Prefix = f.Path, prefixOf(f.Path)
			project.Endpoints = append(project.Endpoints, e)
		}
	}
	return nil
}

// manifestName is the name of the file that describes endpoints without Python.
const manifestName = "tollgate-dev.yaml"

// described is an endpoint in the manifest. It has either an image or the ID of an existing endpoint, and has routes if it is
// load-balanced.
type described struct {
	Config `yaml:",inline"`
	Routes []string `yaml:"routes"`
}

// manifest reads tollgate-dev.yaml if it exists. It does not follow symbolic links out of the project. An unreadable manifest is a fault.
func (p *Project) manifest() {
	var content struct {
		Endpoints []described `yaml:"endpoints,required"`
	}
	var positions *strictyaml.Positions
	data, err := files.ConfinedPath(p.Dir, manifestName).Read(strictyaml.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		positions, err = strictyaml.Load(manifestName, data, &content)
	}
	if faults, ok := errors.AsType[strictyaml.Errors](err); ok {
		for _, f := range faults {
			p.Faults = append(p.Faults, Fault{manifestName, f.Line, f.Column, strings.TrimPrefix(f.Path+": "+f.Message, ": ")})
		}
		return
	}
	if err != nil {
		p.Faults = append(p.Faults, Fault{File: manifestName, Text: err.Error()})
		return
	}
	for i, d := range content.Endpoints {
		at := fmt.Sprintf("endpoints[%d]", i)
		strictyaml.Fill(positions, at, &d.Config, defaults())
		_, line, column := positions.Lookup(at)
		p.entry(&d, line, column)
	}
}

// route matches a route of an image, for example GET /models.
var route = regexp.MustCompile(`^(GET|POST|PUT|DELETE|PATCH) ((?:/[A-Za-z0-9_~{}-][A-Za-z0-9._~{}-]*)+)$`)

// entry adds an endpoint of the manifest.
func (p *Project) entry(d *described, line, column int) {
	e := &Endpoint{File: manifestName, Line: line, Column: column, Config: d.Config, Client: true}
	fault := func(format string, args ...any) { p.Faults = append(p.Faults, e.fault(format, args...)) }
	e.Prefix = "/" + e.name()
	c := &d.Config
	switch {
	case (c.ID == "") == (c.Image == ""):
		fault("an endpoint of this file requires either an image or an id")
	case !endpointName.MatchString(e.name()):
		fault("an endpoint requires a name of letters, digits, ., _ and -")
	case len(c.GPU) > 0 && len(c.CPU) > 0:
		fault("cpu and gpu cannot be combined")
	case len(c.Workers) != 2 || c.Workers[0] < 0 || c.Workers[1] < max(c.Workers[0], 1):
		fault("workers: must contain a minimum and a maximum of at least 1")
	}
	for _, written := range d.Routes {
		parts := route.FindStringSubmatch(written)
		if parts == nil {
			fault("routes: %q must be a route such as GET /models", written)
			continue
		}
		e.Functions = append(e.Functions, &Function{Name: written, Line: line, Column: column, Method: parts[1], Path: parts[2]})
	}
	if len(d.Routes) == 0 {
		e.Functions = []*Function{{Name: e.name(), Line: line, Column: column}}
	}
	if len(e.Functions) > 0 {
		p.Endpoints = append(p.Endpoints, e)
	}
}
