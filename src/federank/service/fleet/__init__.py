"""Many virtual devices against a real server: a rehearsal before people come, and a load test.

They borrow a device's client and readers (service/device) and the compiled engine's kernel; a server is only ever
talked to.

    devices      everybody's private side, in the memory of one process
    connection   a lean HTTP connection for each of them
    rehearsal    how they take part, until the plan is fulfilled
    tally        what happened, counted
    frugal       the same for few messages
    processes    a fleet on several processes
    accuracy     how good the rehearsed federation recommends
"""
