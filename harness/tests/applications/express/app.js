// An application as Express's quick start writes it: a page, and a note that is posted.
const express = require('express')

const app = express()

app.get('/', (req, res) => {
  res.send('Hello World!')
})

app.post('/notes', express.raw({ type: () => true }), (req, res) => {
  res.status(201).json({ bytes: req.body ? req.body.length : 0 })
})

app.listen(Number(process.argv[2]), '127.0.0.1')
