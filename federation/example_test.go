package federation_test

import (
	"fmt"
	"os"
	"time"

	"croft/federation"
	"croft/urn"
)

func Example() {
	dir, err := os.MkdirTemp("", "federation")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	f, _, err := federation.Init(dir, federation.Options{
		Authority: "example.org",
		Manager:   urn.MustParse("urn:publicid:IDN+example.org+authority+cm"),
		Hosts:     []string{"localhost"},
	}, time.Now)
	if err != nil {
		fmt.Println(err)
		return
	}
	alice, _, err := f.AddMember("alice", "alice@example.org")
	if err != nil {
		fmt.Println(err)
		return
	}
	slice, changes, err := f.AddSlice("exp1", alice, federation.DefaultSliceValidity)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(alice.URN)
	fmt.Println(slice.URN)
	for _, c := range changes {
		fmt.Println(c.Action, c.File)
	}
	// Output:
	// urn:publicid:IDN+example.org+user+alice
	// urn:publicid:IDN+example.org+slice+exp1
	// made slices/exp1/slice.pem
	// made slices/exp1/credential-alice.xml
}
