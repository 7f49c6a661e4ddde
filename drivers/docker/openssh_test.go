package docker_test

import (
	"bytes"
	"strings"
	"testing"

	"croft/drivers/docker"
)

// Logins are served by the image's own sshd where it has one; the conformance
// test's image has.
func TestWhoServesLogins(t *testing.T) {
	for image, own := range map[string]bool{fullImage: true, smallImage: false} {
		t.Run(image, func(t *testing.T) {
			need(t, image)
			r := newRig(t, docker.Config{})
			n := r.up(r.node("served", image))
			var log bytes.Buffer
			if err := r.d.Log(t.Context(), n.Sliver, &log); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(log.String(), "served by the image's sshd"); got != own {
				t.Errorf("served by the image's sshd: %v, want %v; the log:\n%s", got, own, log.String())
			}
		})
	}
}
