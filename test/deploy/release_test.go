package deploy_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
		name + "-linux-amd64.tar.gz", name + "-linux-amd64.deb", name + "-linux-amd64.rpm", name + ".cdx.json", "NOTES.md", "SHA256SUMS", "SHA256SUMS.minisig",
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
	for _, want := range []string{"./usr/bin/tollgate", "./lib/systemd/system/tollgate@.service", "./etc/tollgate/", "./usr/share/bash-completion/completions/tollgate", "./usr/share/man/man1/tollgate-serve.1.gz"} {
		if !strings.Contains(listing, want) {
			t.Errorf("the Debian package lacks %s:\n%s", want, listing)
		}
	}
	checkBill(t, first[name+".cdx.json"])
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
