// Command mutants changes the code in ways that tests must notice, one at a time, and
// prints the changes that they did not: survivors. A change is a row of a table;
// the go command's overlay puts it in place of the file, which stays as it is.
//
//	go run ./test/mutants [-run NAME] [-since COMMIT] [-for TIME]
//
// It ends with 1 if there are survivors, with 2 if a row could not be tried.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// patience bounds the tests of a change. A change that makes them run for longer survives: they would not tell in time.
const patience = "2m"

func main() {
	pattern := flag.String("run", "", "only the changes whose names match this regular expression")
	since := flag.String("since", "", "only the changes of files, or for the tests of packages, that differ from this commit")
	most := flag.Duration("for", 0, "begin no further change after this time; 0 means no bound")
	flag.Parse()
	rows, err := chosen(*pattern, *since)
	survivors := 0
	if err == nil {
		survivors, err = run(os.Stdout, rows, *most)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case survivors > 0:
		os.Exit(1)
	}
}

// chosen returns the changes whose names match a pattern and that concern what differs from a commit, "" for all.
func chosen(pattern, since string) ([]mutant, error) {
	only, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	rows := slices.DeleteFunc(mutants(), func(m mutant) bool { return !only.MatchString(m.name) })
	if since == "" {
		return rows, nil
	}
	out, err := exec.Command("git", "diff", "--name-only", since, "--").Output()
	if err != nil {
		return nil, fmt.Errorf("compare with %s: %w", since, err)
	}
	files := strings.Fields(string(out))
	return slices.DeleteFunc(rows, func(m mutant) bool { return !m.concerns(files) }), nil
}

// run tries changes, and returns how many survived. It begins none after a time; 0 means no bound.
func run(w io.Writer, rows []mutant, most time.Duration) (survivors int, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var errs []error
	tried := 0
	for began := time.Now(); tried < len(rows) && (most == 0 || time.Since(began) < most); tried++ {
		m := rows[tried]
		noticed, err := m.try(dir)
		verdict := "noticed "
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", m.name, err))
			verdict = "UNTRIED "
		case !noticed:
			verdict = "SURVIVED"
			survivors++
		}
		_, _ = fmt.Fprintf(w, "%s  %s (%s)\n", verdict, m.name, m.file)
	}
	_, _ = fmt.Fprintf(w, "%d of %d changes survived; %d were not tried for want of time\n", survivors, tried, len(rows)-tried)
	return survivors, errors.Join(errs...)
}

// mutant is one change of the code.
type mutant struct {
	name string
	// file is the changed one, from the root of the repository: the only place that reads old
	// becomes new.
	file, old, new string
	// pkg is where a test must notice, tests the expression for which.
	pkg, tests string
}

// concerns reports whether the changed file, or a file of the package of the tests, is among files.
func (m *mutant) concerns(files []string) bool {
	return slices.ContainsFunc(files, func(file string) bool { return file == m.file || path.Dir(file) == path.Clean(m.pkg) })
}

// changed returns the text of the file with the change.
func (m *mutant) changed() ([]byte, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("%s has %d places that read %q, want one", m.file, n, m.old)
	}
	return bytes.Replace(text, []byte(m.old), []byte(m.new), 1), nil
}

// try runs the tests over the change and reports whether one failed.
func (m *mutant) try(dir string) (noticed bool, err error) {
	text, err := m.changed()
	if err != nil {
		return false, err
	}
	file, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return false, err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return false, err
	}
	table, err := json.Marshal(map[string]any{"Replace": map[string]string{original: file}})
	if err != nil {
		return false, err
	}
	if err := os.WriteFile(overlay, table, 0o600); err != nil {
		return false, err
	}
	out, err := exec.Command("go", "test", "-count=1", "-timeout", patience, "-overlay", overlay, "-run", m.tests, m.pkg).CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return false, err
	}
	text = out
	switch {
	case err == nil && strings.Contains(string(text), "no tests to run"):
		return false, fmt.Errorf("%s has no tests %s", m.pkg, m.tests)
	case err == nil, strings.Contains(string(text), "panic: test timed out"):
		return false, nil
	case !strings.Contains(string(text), "--- FAIL"):
		return false, fmt.Errorf("the change does not build, or the tests do not run:\n%s", text)
	}
	return true, nil
}
