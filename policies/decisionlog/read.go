package decisionlog

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// maxLine is the size of the largest event in a file, in bytes.
const maxLine = 32 << 20

// Copy writes the events of an organisation to w, one JSON object per line, oldest first. It reads a log file and its rotated files, and
// omits events older than since. Other lines are skipped. The log may be written and rotated during the copy.
func Copy(ctx context.Context, f *logfile.File, w io.Writer, org string, since time.Time) error {
	files, err := f.Open()
	defer func() {
		for _, file := range files {
			_ = file.Close()
		}
	}()
	if err != nil {
		return err
	}
	for _, file := range files {
		lines := bufio.NewScanner(file)
		lines.Buffer(make([]byte, 64<<10), maxLine)
		for lines.Scan() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !wanted(lines.Bytes(), org, since) {
				continue
			}
			if _, err := w.Write(append(lines.Bytes(), '\n')); err != nil {
				return err
			}
		}
		if err := lines.Err(); err != nil {
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	return nil
}

// wanted reports whether a line is an event of an organisation and not older than since.
func wanted(line []byte, org string, since time.Time) bool {
	var e struct {
		Timestamp time.Time         `json:"timestamp"`
		Custom    map[string]string `json:"custom"`
	}
	return json.Unmarshal(line, &e) == nil && e.Custom["org"] == org && !e.Timestamp.Before(since)
}
