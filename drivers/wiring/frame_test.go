package wiring

import (
	"bytes"
	"encoding/json"
	"testing"

	"croft/drivers"
)

// FuzzFrame reads what a manager and a switch elsewhere may send each other.
func FuzzFrame(f *testing.F) {
	var call bytes.Buffer
	if err := writeFrame(&call, farCall{Do: "connect", Link: drivers.Link{VNI: 1}}); err != nil {
		f.Fatal(err)
	}
	f.Add(call.Bytes())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0, 9, '{'})
	f.Fuzz(func(t *testing.T, data []byte) {
		var c farCall
		if readFrame(bytes.NewReader(data), &c) != nil {
			return
		}
		if _, err := json.Marshal(c); err != nil {
			t.Skip() // addresses that are none cannot be written again
		}
		var out bytes.Buffer
		if err := writeFrame(&out, c); err != nil {
			t.Fatal(err)
		}
		var again farCall
		if err := readFrame(&out, &again); err != nil {
			t.Errorf("what was read and written cannot be read: %v", err)
		}
	})
}
