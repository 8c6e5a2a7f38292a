package deploy_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// release builds one platform's release from the sources at dir and returns the
// files made, by name.
func release(t *testing.T, dir, key string) map[string][]byte {
	t.Helper()
	dist := t.TempDir()
	changelog := filepath.Join(dist, "changelog")
	if err := os.WriteFile(changelog, []byte("# Changelog\n\n## 9.9.9 (2026-12-01)\n\n- It works.\n\n## 9.9.8\n\n- It did not.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "deploy/release/build"))
	cmd.Env = append(os.Environ(), "VERSION=v9.9.9", "PLATFORMS=linux/amd64", "SOURCE_DATE_EPOCH=1700000000", "DIST="+filepath.Join(dist, "dist"),
		"CHANGELOG="+changelog, "MINISIGN_KEY="+key)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made, err := filepath.Glob(filepath.Join(dist, "dist/*"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, path := range made {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// copySources copies what Git knows to another directory.
func copySources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	line := `git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory "$0"`
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line, dir)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// A release has all its parts, they are signed, and the same sources elsewhere make
// the same bytes. It compiles everything, so only make deploy-check runs it.
func TestRelease(t *testing.T) {
	if os.Getenv("TOLLGATE_REQUIRE_NFPM") == "" {
		t.Skip("part of make deploy-check")
	}
	minisign := tool(t, "minisign")
	keys := t.TempDir()
	secret, public := filepath.Join(keys, "secret"), filepath.Join(keys, "public")
	if out, err := exec.CommandContext(t.Context(), minisign, "-G", "-W", "-s", secret, "-p", public).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	first, second := release(t, here, secret), release(t, copySources(t), secret)
	const name = "tollgate-v9.9.9"
	for _, want := range []string{
		name + "-linux-amd64.tar.gz", "tollgate-chart-v9.9.9.tgz", name + "-linux-amd64.deb", name + "-linux-amd64.rpm", name + ".cdx.json", "NOTES.md", "SHA256SUMS", "SHA256SUMS.minisig",
	} {
		if _, ok := first[want]; !ok {
			t.Errorf("there is no %s", want)
		}
	}
	for file, content := range first {
		if file != "SHA256SUMS.minisig" && string(second[file]) != string(content) {
			t.Errorf("%s differs when it is built again elsewhere", file)
		}
		sum := sha256.Sum256(content)
		if line := fmt.Sprintf("%s  %s\n", hex.EncodeToString(sum[:]), file); !strings.HasPrefix(file, "SHA256SUMS") && !strings.Contains(string(first["SHA256SUMS"]), line) {
			t.Errorf("SHA256SUMS lacks %q", line)
		}
	}
	if got, want := string(first["NOTES.md"]), "## 9.9.9 (2026-12-01)\n\n- It works.\n"; got != want {
		t.Errorf("the notes are %q, want %q", got, want)
	}
	for file, content := range first {
		if err := os.WriteFile(filepath.Join(keys, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = keys
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	if out := run(minisign, "-V", "-p", "public", "-m", "SHA256SUMS"); !strings.Contains(out, "tollgate v9.9.9") {
		t.Errorf("the signature says %s", out)
	}
	run("tar", "--extract", "--file", name+"-linux-amd64.tar.gz", "--strip-components=1")
	if out := run("./tollgate", "version"); out != "tollgate v9.9.9\n" {
		t.Errorf("the program says %q", out)
	}
	if out := run("bash", "-c", "source completions/tollgate.bash && complete -p tollgate"); !strings.Contains(out, "tollgate") {
		t.Errorf("bash completes %q", out)
	}
	if page, err := os.ReadFile(filepath.Join(keys, "man", "tollgate-serve.1")); err != nil || !strings.Contains(string(page), "tollgate v9.9.9") {
		t.Errorf("the manual page of tollgate serve is %.200q (%v)", page, err)
	}
	listing := run("dpkg-deb", "--contents", name+"-linux-amd64.deb")
	for _, want := range []string{"./usr/bin/tollgate", "./usr/lib/systemd/system/tollgate@.service", "./etc/tollgate/", "./usr/share/bash-completion/completions/tollgate", "./usr/share/man/man1/tollgate-serve.1.gz"} {
		if !strings.Contains(listing, want) {
			t.Errorf("the Debian package lacks %s:\n%s", want, listing)
		}
	}
	run("tar", "--extract", "--file", "tollgate-chart-v9.9.9.tgz")
	if text, err := os.ReadFile(filepath.Join(keys, "tollgate/Chart.yaml")); err != nil || !strings.Contains(string(text), "\nversion: 9.9.9\nappVersion: v9.9.9\n") {
		t.Errorf("the chart is %s (%v)", text, err)
	}
	for _, file := range documentedFiles(t) {
		if file = strings.ReplaceAll(file, "0.9.0", "9.9.9"); first[file] == nil && !strings.Contains(file, "darwin") {
			t.Errorf("docs/operations.md installs %s, which there is not", file)
		}
	}
	checkBill(t, first[name+".cdx.json"])
}

// documentedFiles are the files of a release that docs/operations.md installs.
func documentedFiles(t *testing.T) []string {
	t.Helper()
	files := regexp.MustCompile(`tollgate-[a-z0-9.-]+\.(?:deb|rpm|tgz|tar\.gz)`).FindAllString(read(t, "docs/operations.md"), -1)
	if len(files) < 4 {
		t.Errorf("docs/operations.md installs %q alone", files)
	}
	return files
}

// The Debian package, installed into a directory of its own, has units that systemd
// takes and directories that everybody may enter. Its program is another.
func TestPackageInstalls(t *testing.T) {
	t.Parallel()
	tool(t, "dpkg-deb")
	work := t.TempDir()
	for name, mode := range map[string]os.FileMode{
		"tollgate": 0o755, "completions/tollgate.bash": 0o644, "completions/tollgate.zsh": 0o644, "completions/tollgate.fish": 0o644, "man/tollgate.1.gz": 0o644,
	} {
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/true\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	deb := filepath.Join(work, "tollgate.deb")
	cmd := exec.CommandContext(t.Context(), tool(t, "nfpm"), "package", "--config", "deploy/release/nfpm.yaml", "--packager", "deb", "--target", deb)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PACKAGE_ARCH=amd64", "PACKAGE_VERSION=v9.9.9", "PACKAGE_ROOT="+work, "PACKAGE_MAN="+filepath.Join(work, "man"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(runTool(t, "dpkg-deb", "--contents", deb)) {
		if strings.HasPrefix(line, "d") && !strings.HasPrefix(line, "drwxr-xr-x root/root") {
			t.Errorf("a directory of the package is not open to all: %s", line)
		}
	}
	installed := filepath.Join(work, "root")
	runTool(t, "dpkg-deb", "--extract", deb, installed)
	// The parts of a system beside the package.
	for _, name := range []string{"bin/kill", "bin/sleep", "usr/bin/curl", "usr/bin/envoy"} {
		path := filepath.Join(installed, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	installedUnits, err := filepath.Glob(filepath.Join(installed, "usr/lib/systemd/system/*"))
	if err != nil || len(installedUnits) < 6 {
		t.Fatalf("the package has the units %q, %v", installedUnits, err)
	}
	for _, unit := range installedUnits {
		name := strings.ReplaceAll(filepath.Base(unit), "@", "@next")
		if out := systemdAnalyze(t, "verify", "--root="+installed, "--man=no", "--recursive-errors=no", name); out != "" {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// The changelog has the notes of the release that is to come or was last, which the
// documentation installs.
func TestChangelogHasTheRelease(t *testing.T) {
	t.Parallel()
	newest := regexp.MustCompile(`(?m)^## ([0-9.]+) \([0-9-]{10}\)$`).FindStringSubmatch(read(t, "CHANGELOG.md"))
	if newest == nil {
		t.Fatal("no version has a section in CHANGELOG.md")
	}
	notes, err := exec.CommandContext(t.Context(), root+"deploy/release/notes", "v"+newest[1], root+"CHANGELOG.md").Output()
	if err != nil || !strings.HasPrefix(string(notes), newest[0]+"\n") {
		t.Errorf("the notes are %.100q, %v", notes, err)
	}
	for _, file := range documentedFiles(t) {
		if !strings.Contains(file, "v"+newest[1]) {
			t.Errorf("docs/operations.md installs %s, the newest version is %s", file, newest[1])
		}
	}
}

// The image is given its stamp and labels, and its sources are whole without the files
// that the recipe leaves out.
func TestImageRecipe(t *testing.T) {
	t.Parallel()
	line := runTool(t, "make", "--dry-run", "--no-print-directory", "image", "VERSION=v9.9.9", "DOCKER=podman")
	recipe := read(t, "deploy/Dockerfile")
	for _, want := range []string{"podman build -f deploy/Dockerfile", "-t tollgate:v9.9.9 ."} {
		if !strings.Contains(line, want) {
			t.Errorf("make image runs %s, want %s", line, want)
		}
	}
	for _, m := range regexp.MustCompile(`--build-arg ([A-Z]+)=`).FindAllStringSubmatch(line, -1) {
		if !strings.Contains(recipe, "\nARG "+m[1]+"=") {
			t.Errorf("make image sets %s, which the recipe does not declare", m[1])
		}
	}
	sources := copySources(t)
	for pattern := range strings.Lines(read(t, "deploy/Dockerfile.dockerignore")) {
		pattern = strings.TrimSpace(pattern)
		if name, ok := strings.CutPrefix(pattern, "**/"); ok {
			removeAll(t, "find", sources, "-name", name, "-prune", "-exec", "rm", "-r", "{}", "+")
		} else if !strings.HasPrefix(pattern, "#") {
			removeAll(t, "rm", "-rf", filepath.Join(sources, pattern))
		}
	}
	// It fails where a file that is embedded is not there.
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/tollgate")
	list.Dir = sources
	if out, err := list.CombinedOutput(); err != nil {
		t.Errorf("the image's sources are not whole: %v\n%.1000s", err, out)
	}
}

func removeAll(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// checkBill holds a bill of materials against go.mod.
func checkBill(t *testing.T, text []byte) {
	t.Helper()
	var bill struct {
		BOMFormat  string
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range bill.Components {
		names = append(names, c.Name+" "+c.Version)
		if c.Name != "std" && !strings.Contains(read(t, "go.mod"), c.Name+" "+c.Version) {
			t.Errorf("go.mod does not name %s %s", c.Name, c.Version)
		}
	}
	if bill.BOMFormat != "CycloneDX" || !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "github.com/redis/go-redis/v9 ") }) {
		t.Errorf("the bill is of format %q and about %q", bill.BOMFormat, names)
	}
}

// No release without its section of the changelog.
func TestReleaseNeedsNotes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "changelog")
	if err := os.WriteFile(path, []byte("# Changelog\n\n## Unreleased\n\n- More.\n\n## 1.2.30\n\n- Thirty.\n\n## 1.2.3\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"v1.2.3": "is empty", "v1.2.4": "no section", "v1.2": "no section", "v1.2.30": ""} {
		out, err := exec.CommandContext(t.Context(), root+"deploy/release/notes", version, path).CombinedOutput()
		if (err == nil) != (want == "") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s; want %q", version, err, out, want)
		}
	}
}
