package built

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const program = "github.com/tollgate-dev/tollgate/cmd/tollgate"

// Tollgate builds tollgate and puts it at path, which must not exist. The binary is kept in the
// user's cache, where the go command finds it up to date; test processes take turns there. The
// file at path stays as it is when the code changes.
func Tollgate(ctx context.Context, path string) error {
	dir, err := cache(ctx)
	if err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	kept := filepath.Join(dir, "tollgate")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", kept, program).CombinedOutput(); err != nil {
		return fmt.Errorf("building tollgate: %w\n%s", err, out)
	}
	if os.Link(kept, path) == nil {
		return nil
	}
	return copied(kept, path) // another file system
}

// cache returns a directory for this checkout of the module.
func cache(ctx context.Context) (string, error) {
	module, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(string(module))))
	dir := filepath.Join(user, "tollgate-test", fmt.Sprintf("%x", sum[:8]))
	return dir, os.MkdirAll(dir, 0o700)
}

// lock waits for a file lock, which also ends with this process.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

func copied(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
