package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"croft/aggregate"
	"croft/credentials"
	"croft/internal/config"
	"croft/rest"
	"croft/rest/camp"
	"croft/rest/im"
	"croft/rest/zoe"
	"croft/urn"
)

// programVersion is that of the program's module, as it was built.
func programVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}

// verifierOf gives members with accounts for the REST APIs the rights on what
// they have made by those.
func verifierOf(conf *config.Config, trust *credentials.Trust, policy *credentials.Policy, site urn.Authority) *credentials.Verifier {
	v := credentials.NewVerifier(trust, policy)
	members := map[urn.URN]bool{}
	for _, a := range conf.Rest.Accounts {
		members[a.Member.Canonical()] = true
	}
	v.Owning(func(member urn.URN) []credentials.LocalRight {
		if !members[member.Canonical()] {
			return nil
		}
		return rest.Rights(site, member)
	})
	return v
}

// restBodyBytes bounds what REST clients send.
const restBodyBytes = 32 << 20

// openREST makes the server of the REST faces, its listener, and what has to
// run beside it. All are nil if no server is wanted.
func openREST(conf *config.Config, service *aggregate.Service, log *slog.Logger) (*http.Server, net.Listener, func(context.Context), error) {
	if conf.Rest.Listen == "" {
		return nil, nil, nil, nil
	}
	var list []rest.Account
	for _, a := range conf.Rest.Accounts {
		list = append(list, rest.Account{Name: a.Name, Password: a.Password, Token: a.Token, Member: a.Member, Keys: a.Keys})
	}
	accounts, err := rest.NewAccounts(list, time.Now)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("rest.accounts: %w", err)
	}
	records := map[string]*rest.Records{}
	for _, face := range []string{"im", "camp", "zoe"} {
		if records[face], err = rest.OpenRecords(filepath.Join(filepath.Dir(conf.Database), "rest", face)); err != nil {
			return nil, nil, nil, err
		}
	}
	infrastructures := im.New(im.Config{
		Service: service, Accounts: accounts, Records: records["im"], Path: "/im", Clock: time.Now, Random: rand.Reader, Log: log,
	})
	platform, err := camp.New(camp.Config{
		Service: service, Accounts: accounts, Records: records["camp"], Path: "/camp", Version: programVersion(), Hosts: conf.Rest.PackageHosts,
		Clock: time.Now, Random: rand.Reader, Log: log,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	executions, err := zoe.New(zoe.Config{
		Service: service, Accounts: accounts, Records: records["zoe"], Path: "/zoe", Version: programVersion(), BySize: conf.Rest.ZoeOrder == "size",
		Clock: time.Now, Random: rand.Reader, Log: log,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	handler := rest.Handler(rest.Config{
		Faces: map[string]http.Handler{"/im": infrastructures, "/camp": platform, "/zoe": executions},
		Log:   log, Clock: time.Now, BodyBytes: restBodyBytes, Concurrent: conf.Limits.ConcurrentCalls,
	})
	renewals := &rest.Renewals{
		Service: service, Lifetime: time.Duration(conf.Rest.Lifetime), Clock: time.Now, After: time.After, Log: log,
	}
	for _, a := range list {
		renewals.Members = append(renewals.Members, a.Member)
	}
	beside := func(ctx context.Context) {
		var group sync.WaitGroup
		group.Go(func() { renewals.Run(ctx) })
		executions.Run(ctx)
		group.Wait()
	}
	server := newServer(conf, handler, log)
	plain, err := net.Listen("tcp", conf.Rest.Listen)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("rest: listening: %w", err)
	}
	listener := netutil.LimitListener(plain, conf.Limits.Connections)
	if conf.Rest.Plain {
		return server, listener, beside, nil
	}
	certificate, err := tls.LoadX509KeyPair(conf.PKI.Certificate, conf.PKI.Key)
	if err != nil {
		plain.Close()
		return nil, nil, nil, fmt.Errorf("rest: server certificate: %w", err)
	}
	return server, tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}), beside, nil
}
