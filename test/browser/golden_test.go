package browser

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "rewrite the pictures of pages")

// The bounds of the differences between two machines: fonts, ids, and the edges of letters.
const (
	cell      = 20   // pixels of the squares whose mean is compared
	alike     = 30.0 // of 255: two squares of one brightness
	mayDiffer = 0.04 // the share of squares that may be others
)

// The overview and one request look as they did, with the data and the clock of the test: a style that is lost or a part that has moved is seen, a letter
// is not. Write the pictures anew with -update, and look at them.
func TestThePagesLookAsTheyDid(t *testing.T) {
	c := serveTown(t)
	for _, pod := range []struct{ key, name, gpus string }{
		{"key_of_ann", "train", "2"}, {"key_of_mel", "notebook", "1"}, {"key_of_ann", "large", "3"},
	} {
		c.pod(t, pod.key, pod.name, pod.gpus)
	}
	c.pass(t, 9*time.Minute)
	b := c.login(t, emulationOf("light"), chromedp.EmulateViewport(1200, 900))
	looks(t, b, "overview")
	b.do(t, chromedp.Navigate(c.admin.URL+"/ui/requests?refused=true"))
	click(t, b, `tr.linked a.row[href^="/ui/requests/"]`)
	b.until(t, `document.querySelector("h1")?.textContent === "createPod"`)
	looks(t, b, "request")
}

// looks compares the page with its picture.
func looks(t *testing.T, b *tab, name string) {
	t.Helper()
	b.until(t, `document.readyState === "complete"`)
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "golden", name+".png")
	before, _ := os.ReadFile(file) // a new picture has no file yet
	if *update && (before == nil || differs(t, shot, before) > mayDiffer) {
		if err := os.WriteFile(file, shot, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if share := differs(t, shot, want); share > mayDiffer {
		seen := filepath.Join(t.ArtifactDir(), name+".png")
		if err := os.WriteFile(seen, shot, 0o600); err != nil {
			t.Error(err)
		}
		t.Errorf("%s: %.0f %% of the page differ from %s; go test -artifacts keeps %s", name, 100*share, file, seen)
	}
}

// differs is the share of the squares of two pictures that have another brightness.
func differs(t *testing.T, one, other []byte) float64 {
	t.Helper()
	a, b := brightness(t, one), brightness(t, other)
	if len(a) != len(b) {
		return 1
	}
	n := 0
	for i := range a {
		if math.Abs(a[i]-b[i]) > alike {
			n++
		}
	}
	return float64(n) / float64(len(a))
}

// brightness is the mean of each square of a picture, 0 to 255.
func brightness(t *testing.T, text []byte) []float64 {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var means []float64
	size := picture.Bounds().Size()
	for y := 0; y+cell <= size.Y; y += cell {
		for x := 0; x+cell <= size.X; x += cell {
			means = append(means, mean(picture, image.Rect(x, y, x+cell, y+cell)))
		}
	}
	return means
}

// mean is the mean brightness of a part of a picture.
func mean(picture image.Image, part image.Rectangle) float64 {
	sum := 0
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			sum += int(color.GrayModel.Convert(picture.At(x, y)).(color.Gray).Y)
		}
	}
	return float64(sum) / float64(part.Dx()*part.Dy())
}
